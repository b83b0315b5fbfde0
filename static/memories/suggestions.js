// Suggests end users, agents or sessions while somebody types into a field for one. The words travel in the body, as
// the palette's do.
(() => {
  const PAUSE = 150;
  let timer = 0;
  let asking = null;

  function listOf(field) {
    if (!field.list) {
      const list = document.createElement("datalist");
      list.id = `${field.id}-found`;
      field.after(list);
      field.setAttribute("list", list.id);
    }
    return field.list;
  }

  async function ask(field) {
    const palette = document.querySelector("[data-palette-form]");
    const sent = new FormData(palette);
    sent.set("words", field.value);
    sent.set("tenant", field.dataset.tenant ?? field.form.elements.tenant?.value ?? "");
    // Agents and sessions are those of the end user whom the form names, if it names one.
    const person = field.form.querySelector('[data-finds="people"]');
    sent.set("person", field.dataset.person ?? person?.value ?? "");
    asking = new AbortController();
    const headers = { "X-Palette": field.dataset.finds };
    try {
      const answer = await fetch(palette.action, { method: "POST", body: sent, headers, signal: asking.signal });
      // Signed out meanwhile, the answer is another page.
      listOf(field).innerHTML = answer.ok && !answer.redirected ? await answer.text() : "";
    } catch (error) {
      if (error.name !== "AbortError") {
        listOf(field).textContent = "";
      }
    }
  }

  function soon(field, pause) {
    clearTimeout(timer);
    asking?.abort();
    // Who was chosen from the list needs no further question.
    if (![...listOf(field).options].some((option) => option.value === field.value)) {
      timer = setTimeout(ask, pause, field);
    }
  }

  document.addEventListener("input", ({ target }) => {
    if (target.matches("[data-finds]")) {
      soon(target, PAUSE);
    }
  });

  // Of agents and sessions there are few enough to be offered before a letter is typed.
  document.addEventListener("focusin", ({ target }) => {
    if (target.matches('[data-finds="agents"], [data-finds="sessions"]') && !target.value) {
      soon(target, 0);
    }
  });
})();
