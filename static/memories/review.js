// The review queue: its keys, and the next item without a new page. Every key presses a button or follows a link that
// is there; without this file they lead to whole pages.
(() => {
  const FRAGMENT = "X-Fragment";
  const NEWS = 20_000;
  let busy = false;

  document.documentElement.classList.add("review-scripted");

  const place = () => document.getElementById("review");
  const isTyping = (target) =>
    target.isContentEditable || (target.matches("input, textarea, select") && target.type !== "checkbox");

  // Another session may have ended, or the item may be gone: the page itself says which.
  async function swap(address, options) {
    if (busy) {
      return;
    }
    busy = true;
    place().setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(address, { ...options, headers: { [FRAGMENT]: "1" }, credentials: "same-origin" });
      if (answer.headers.get(FRAGMENT) !== "queue") {
        location.reload();
        return;
      }
      show(await answer.text());
    } catch {
      // Whether it arrived nobody knows: what is sent again by hand is checked against what was seen.
      tell(place().dataset.lost);
    } finally {
      busy = false;
      place().removeAttribute("aria-busy");
    }
  }

  function show(html) {
    const list = document.querySelector(".review-list");
    const scrolled = list ? list.scrollTop : 0;
    const ticked = [...place().querySelectorAll("#bulk [name=item]:checked")].map((box) => box.value);
    place().innerHTML = html;
    const body = place().querySelector(".review");
    history.replaceState(null, "", body.dataset.address);
    const fresh = document.querySelector(".review-list");
    for (const box of fresh.querySelectorAll("#bulk [name=item]")) {
      box.checked = ticked.includes(box.value);
    }
    fresh.scrollTop = scrolled;
    const here = fresh.querySelector(".review-here");
    if (here) {
      keepInView(fresh, here);
    }
    badge(body.dataset.waiting);
    focus();
    const said = place().querySelector(".hub-refused, .review-fresh [data-said]");
    tell(said ? said.textContent.trim() : "");
    ageing();
  }

  // What was just done is news for a while; its undo stays.
  function ageing() {
    const done = place().querySelector(".review-fresh");
    setTimeout(() => done?.classList.remove("review-fresh"), NEWS);
  }

  function keepInView(list, row) {
    const [outer, inner] = [list.getBoundingClientRect(), row.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) {
      list.scrollTop += inner.top - outer.top - outer.height / 3;
    }
  }

  function focus() {
    const open = place().querySelector("details[open].review-verb form");
    const target = open ? firstField(open) : document.getElementById("proposal");
    if (target) {
      target.focus({ preventScroll: true });
    }
    window.scrollTo({ top: 0 });
  }

  function firstField(form) {
    const wrong = form.querySelector(".errorlist ~ input, [aria-invalid=true]");
    return wrong || form.querySelector("textarea, input:not([type=hidden]):not([type=radio]), select");
  }

  // Outside of what is replaced, so that a screen reader hears the change.
  function tell(words) {
    const status = document.getElementById("review-said");
    if (status) {
      status.textContent = words;
    }
  }

  // The number beside the queue in the sidebar.
  function badge(waiting) {
    for (const link of document.querySelectorAll('#nav-sidebar a[href$="/reviewitem/queue/"]')) {
      const shown = [...link.parentElement.querySelectorAll("span")].find((one) => /^[\d,]+$/.test(one.textContent.trim()));
      if (shown) {
        shown.textContent = Number(waiting).toLocaleString("en");
      }
    }
  }

  function addressed(form, submitter) {
    const data = new FormData(form, submitter);
    if (form.method === "get") {
      const query = new URLSearchParams([...data].filter(([, value]) => value));
      return [`${form.getAttribute("action")}?${query}`, {}];
    }
    return [form.getAttribute("action"), { method: "POST", body: new URLSearchParams(data) }];
  }

  document.addEventListener("submit", (event) => {
    if (event.target.matches("#review form[data-swap]")) {
      event.preventDefault();
      swap(...addressed(event.target, event.submitter));
    }
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches(".review-filters select")) {
      event.target.form.requestSubmit();
    }
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest("#review a[data-swap]");
    const verb = event.target.closest("summary")?.closest(".review-verb");
    if (verb && !verb.open) {
      event.preventDefault();
      verb.open = true;
      enter(verb);
    } else if (event.target.closest("[data-keys]")) {
      document.getElementById("review-keys").showModal();
    } else if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      if (link.hasAttribute("href")) {
        swap(link.getAttribute("href"), {});
      }
    }
  });

  // At once, not with the toggle event, which comes later: what is typed next is text and no key any more.
  function enter(verb) {
    const field = firstField(verb.querySelector("form"));
    field.focus();
    if (field.select) {
      field.select();
    }
  }

  function close() {
    const open = document.querySelector(".review-verb[open]");
    if (open) {
      open.open = false;
      open.querySelector("summary").focus();
    }
  }

  function choose() {
    const box = document.querySelector(".review-here input[type=checkbox]");
    if (box) {
      box.click();
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.altKey || document.querySelector("dialog[open]")) {
      return;
    }
    const form = event.target.closest(".review-verb form");
    if (event.key === "Escape") {
      close();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form) {
      event.preventDefault();
      form.requestSubmit();
    } else if (!event.ctrlKey && !event.metaKey && !isTyping(event.target)) {
      press(event);
    }
  });

  function press(event) {
    const key = event.key.toLowerCase();
    const button = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (key === "x") {
      choose();
    } else if (button && !(event.repeat && key !== "j" && key !== "k")) {
      event.preventDefault();
      button.click();
    }
  }
})();
