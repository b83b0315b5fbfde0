// The keys of a skill that waits: each presses the button that shows it.
"use strict";

(() => {
  const isTyping = (target) => target.isContentEditable || target.matches("input, textarea, select");

  document.addEventListener("keydown", (event) => {
    const isOurs = !event.ctrlKey && !event.metaKey && !event.altKey && !event.repeat && !event.isComposing;
    if (!isOurs || event.defaultPrevented || isTyping(event.target) || document.querySelector("dialog[open]")) {
      return;
    }
    const button = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    if (button) {
      event.preventDefault();
      button.click();
      document.querySelector("details[open] textarea")?.focus();
    }
  });
})();
