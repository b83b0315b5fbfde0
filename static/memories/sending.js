// Ctrl and Enter send the form of a verb that somebody writes in, as in the review queue: Enter alone begins a line.
"use strict";

document.addEventListener("keydown", (event) => {
  const form = event.target.closest?.(".hub-verb form");
  const isSent = event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.repeat;
  if (form && isSent && !event.isComposing && !event.defaultPrevented) {
    event.preventDefault();
    form.requestSubmit();
  }
});
