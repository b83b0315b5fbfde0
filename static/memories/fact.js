// Merging facts: what is typed here stays in the page; without this script both pages work as they are.
"use strict";

(() => {
  const filter = document.querySelector("[data-fact-filter]");
  if (filter) {
    const rows = document.querySelectorAll(".fact-offered > li");
    filter.hidden = rows.length < 6;
    filter.querySelector("input").addEventListener("input", (event) => {
      const words = event.target.value.toLowerCase().split(/\s+/);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        // What is ticked stays in sight.
        row.hidden = !row.querySelector("input").checked && !words.every((word) => text.includes(word));
      }
    });
    filter.querySelector("input").addEventListener("keydown", (event) => {
      if (event.key === "Enter") event.preventDefault();
    });
  }

  const content = document.getElementById("merge_content");
  for (const button of document.querySelectorAll("[data-fact-take]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      content.value = button.dataset.factTake;
      content.focus();
    });
  }
})();
