// Fetches the first steps anew every five seconds while the page is looked at, until the first turn has arrived.
(() => {
  const EVERY = 5_000;
  const PATIENCE = 20 * 60_000;
  const steps = document.getElementById("first-run");
  if (!steps?.querySelector("details")) {
    return;
  }
  const began = Date.now();

  async function refresh() {
    if (document.hidden || Date.now() - began > PATIENCE || steps.contains(document.activeElement)) {
      return;
    }
    try {
      const answer = await fetch(steps.dataset.again, { redirect: "manual", headers: { Accept: "text/html" } });
      if (!answer.ok) {
        return;
      }
      const isOpen = steps.querySelector("details")?.open;
      const text = await answer.text();
      if (steps.contains(document.activeElement) || text === steps.dataset.shown) {
        return;
      }
      steps.dataset.shown = text;
      steps.innerHTML = text;
      const details = steps.querySelector("details");
      if (details && isOpen !== undefined) {
        details.open = isOpen;
      }
    } catch {
      // The next time.
    }
  }

  setInterval(refresh, EVERY);
  steps.addEventListener("hub:refresh", refresh);
})();
