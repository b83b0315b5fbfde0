// Suggests end users while somebody types into a field for one. The words travel in the body, as the palette's do.
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
    asking = new AbortController();
    const headers = { "X-Palette": "people" };
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

  document.addEventListener("input", ({ target }) => {
    if (!target.matches("[data-finds-person]")) {
      return;
    }
    clearTimeout(timer);
    asking?.abort();
    // Who was chosen from the list needs no further question.
    if (![...listOf(target).options].some((option) => option.value === target.value)) {
      timer = setTimeout(ask, PAUSE, target);
    }
  });
})();
