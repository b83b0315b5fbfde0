// Shows the figures anew every 30 seconds: while the page is looked at, and for 20 minutes after the last key or touch,
// so that a page left open does not keep somebody signed in.
(() => {
  const EVERY = 30_000;
  const PATIENCE = 20 * 60_000;
  const figures = document.getElementById("figures");
  const stale = document.querySelector(".hub-stale");
  if (!figures) {
    return;
  }
  let touched = Date.now();
  for (const kind of ["pointerdown", "keydown", "scroll"]) {
    addEventListener(kind, () => { touched = Date.now(); }, { passive: true });
  }

  async function fetched() {
    // A redirect leads to the sign-in page: whoever left is not let in by it.
    const answer = await fetch(figures.dataset.again, { redirect: "manual", headers: { Accept: "text/html" } });
    if (!answer.ok) {
      throw new Error(String(answer.status));
    }
    return answer.text();
  }

  async function refresh() {
    const away = document.hidden || Date.now() - touched > PATIENCE;
    // What has the focus would lose it.
    if (away || figures.contains(document.activeElement)) {
      return;
    }
    try {
      const text = await fetched();
      if (!figures.contains(document.activeElement)) {
        figures.innerHTML = text;
      }
      stale.hidden = true;
    } catch {
      stale.hidden = false;
    }
  }

  setInterval(refresh, EVERY);
  figures.addEventListener("hub:refresh", refresh);
})();
