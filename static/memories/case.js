// Shows how far a run is, every two seconds while the page is looked at; at its end the page as it is then.
(() => {
  const EVERY = 2_000;
  const shown = () => document.querySelector(".case-progress[data-again]");

  async function refresh() {
    const progress = shown();
    if (!progress || document.hidden || progress.contains(document.activeElement)) {
      return;
    }
    // A redirect leads to the sign-in page: whoever left is not let in by it.
    const answer = await fetch(progress.dataset.again, { redirect: "manual", headers: { "X-Fragment": "progress" } });
    if (!answer.ok) {
      return;
    }
    const found = document.createElement("template");
    found.innerHTML = await answer.text();
    const now = found.content.querySelector(".case-progress");
    if (now.dataset.state !== progress.dataset.state) {
      location.reload();
    } else if (now.innerHTML !== progress.innerHTML) {
      progress.innerHTML = now.innerHTML;
    }
  }

  if (shown()) {
    setInterval(() => refresh().catch(() => {}), EVERY);
  }
})();

// What only a script can do is offered by one alone.
for (const button of document.querySelectorAll("[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => print());
}

// The keyboard goes on where something is to be corrected.
document.querySelector("form [aria-invalid='true']")?.focus();
