// Without this every link and form here opens a page of its own; with it the page stays and its part is fetched.
(() => {
  const fetched = async (address, fragment, body) => {
    const answer = await fetch(address, {
      method: body ? "POST" : "GET",
      body,
      headers: { "X-Fragment": fragment },
      credentials: "same-origin",
    });
    // Signed out meanwhile, or something is wrong with the form: the whole page says so.
    if (answer.redirected || !answer.ok) {
      throw new Error(String(answer.status));
    }
    return answer.text();
  };

  const older = async (link) => {
    const place = link.closest(".hub-older");
    place.setAttribute("aria-busy", "true");
    try {
      const shown = document.createElement("template");
      shown.innerHTML = await fetched(link.href, "timeline");
      joinDay(place.previousElementSibling, shown.content.querySelector(".hub-day"));
      const first = shown.content.querySelector(".hub-item a");
      place.replaceWith(shown.content);
      first?.focus({ preventScroll: true });
    } catch {
      window.location.assign(link.href);
    }
  };

  // One day may go on behind the cursor.
  const joinDay = (last, next) => {
    if (last && next && last.dataset.day === next.dataset.day) {
      next.querySelector("h2").remove();
      next.style.marginTop = ".5rem";
    }
  };

  const ask = async (form) => {
    const into = document.getElementById(form.dataset.into);
    into.setAttribute("aria-busy", "true");
    try {
      into.innerHTML = await fetched(form.action, form.dataset.into, new FormData(form));
    } catch {
      form.submit();
    } finally {
      into.removeAttribute("aria-busy");
    }
  };

  // Where the card with who it is stands before the view it folds to a line; wide, the style sheet shows all of it.
  const fold = document.querySelector(".hub-fold");
  const more = document.getElementById("who-more");
  if (fold && more) {
    const show = (open) => {
      more.toggleAttribute("data-folded", !open);
      fold.setAttribute("aria-expanded", String(open));
    };
    fold.hidden = false;
    fold.addEventListener("click", () => show(more.hasAttribute("data-folded")));
    // A form that was refused stays in sight.
    show(Boolean(more.querySelector("details[open]")));
  }

  // A menu closes when somebody goes on elsewhere.
  const closeMenus = (but) => {
    for (const menu of document.querySelectorAll(".hub-menu[open]")) {
      if (!menu.contains(but)) {
        menu.open = false;
      }
    }
  };
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.querySelector(".hub-menu[open]");
    if (menu) {
      closeMenus(null);
      menu.querySelector("summary").focus();
    }
  });
  document.addEventListener("focusin", (event) => closeMenus(event.target));

  document.addEventListener("click", (event) => {
    closeMenus(event.target);
    const link = event.target.closest("a[data-older]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      older(link);
    }
  });

  document.addEventListener("submit", (event) => {
    // Another button leads elsewhere, with the same fields.
    if (event.target.matches("form[data-into]") && !event.submitter?.hasAttribute("formaction")) {
      event.preventDefault();
      ask(event.target);
    }
  });
})();
