// The command palette: Ctrl+K opens it, typing asks the server, arrows choose, Enter opens. It keeps nothing.
(() => {
  const palette = document.getElementById("palette");
  const form = palette.querySelector("[data-palette-form]");
  const field = form.elements.words;
  const hits = palette.querySelector("[data-palette-hits]");
  const PAUSE = 150;
  let timer = 0;
  let asking = null;
  let answered = null;
  // The hit that the arrows chose: an answer that comes later keeps it. Typing on gives it up.
  let picked = "";

  // What a hit leads to: a page, or a search that is posted.
  const named = (hit) => hit?.href ?? hit?.textContent ?? "";

  const links = () => [...hits.querySelectorAll("[data-palette-hit]")];

  function choose(link) {
    for (const each of links()) {
      each.toggleAttribute("data-chosen", each === link);
    }
    link?.scrollIntoView({ block: "nearest" });
  }

  function move(step) {
    const all = links();
    const at = all.findIndex((link) => link.hasAttribute("data-chosen"));
    const link = all[(at + step + all.length) % all.length];
    picked = named(link);
    choose(link);
  }

  async function ask() {
    asking?.abort();
    asking = new AbortController();
    const words = field.value;
    answered = null;
    const sent = { method: "POST", body: new FormData(form), headers: { "X-Palette": "1" }, signal: asking.signal };
    try {
      const answer = await fetch(form.action, sent);
      // Signed out meanwhile, the answer is another page: the form itself leads there.
      hits.innerHTML = answer.ok && !answer.redirected ? await answer.text() : "";
      choose(links().find((link) => named(link) === picked) ?? links()[0]);
      answered = words;
    } catch (error) {
      if (error.name !== "AbortError") {
        hits.textContent = "";
      }
    }
  }

  function open() {
    if (!palette.open) {
      palette.showModal();
      field.focus();
      ask();
    }
  }

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (palette.open) {
        palette.close();
      } else {
        open();
      }
    }
  });

  document.addEventListener("click", (event) => {
    if (event.target === palette) {
      palette.close();
    } else if (event.target.closest("[data-palette-open]") && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      open();
    }
  });

  field.addEventListener("input", () => {
    picked = "";
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  });

  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Escape") {
      // A search field would take the first one to empty itself.
      event.preventDefault();
      palette.close();
    }
  });

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(timer);
    if (answered !== field.value) {
      await ask();
    }
    links().find((link) => link.hasAttribute("data-chosen"))?.click();
  });

  palette.addEventListener("close", () => {
    clearTimeout(timer);
    asking?.abort();
    form.reset();
    hits.textContent = "";
    answered = null;
    picked = "";
  });
})();
