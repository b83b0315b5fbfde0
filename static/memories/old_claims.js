// The keys of what still says an old claim: J and K go on and back, the others press a button of the memory in focus.
"use strict";

(() => {
  const rows = [...document.querySelectorAll("[data-claim]")];
  const here = () => document.activeElement.closest("[data-claim]") || rows[0];
  const isTyping = (target) => target.isContentEditable || target.matches("input, textarea, select");

  const go = (step) => {
    const place = document.activeElement.closest("[data-claim]") ? rows.indexOf(here()) + step : 0;
    rows[Math.min(Math.max(place, 0), rows.length - 1)]?.focus();
  };

  document.addEventListener("keydown", (event) => {
    const isOurs = !event.ctrlKey && !event.metaKey && !event.altKey && !event.repeat && !event.isComposing;
    if (!isOurs || event.defaultPrevented || isTyping(event.target) || document.querySelector("dialog[open]")) {
      return;
    }
    const key = event.key.toLowerCase();
    if (key === "j" || key === "k") {
      event.preventDefault();
      go(key === "j" ? 1 : -1);
    } else if (key === "z") {
      document.querySelector(".hub-undo")?.click();
    } else {
      const button = here()?.querySelector(`[data-key="${CSS.escape(key)}"]`);
      if (button) {
        event.preventDefault();
        button.click();
        here().querySelector("details[open] textarea")?.focus();
      }
    }
  });

  rows[0]?.focus({ preventScroll: true });
})();
