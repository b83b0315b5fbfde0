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

  // The trends come after the page, and again for another choice. An answer that comes late gives way to a newer choice.
  const trends = document.getElementById("trends");
  let asked = 0;

  async function show(query) {
    const number = ++asked;
    trends.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(`${trends.dataset.from}?${query}`, { redirect: "manual", headers: { Accept: "text/html" } });
      if (!answer.ok) {
        throw new Error(String(answer.status));
      }
      const text = await answer.text();
      if (number === asked) {
        const focused = trends.contains(document.activeElement) ? document.activeElement : null;
        trends.innerHTML = text;
        const name = focused?.name;
        if (name) {
          trends.querySelector(`select[name="${name}"], input[name="${name}"]:checked`)?.focus();
        }
      }
    } catch {
      stale.hidden = false;
    }
    if (number === asked) {
      trends.removeAttribute("aria-busy");
    }
  }

  if (trends) {
    trends.addEventListener("change", (event) => {
      show(new URLSearchParams(new FormData(event.target.form)));
    });
    trends.addEventListener("submit", (event) => event.preventDefault());
    show("");
  }

  setInterval(refresh, EVERY);
  figures.addEventListener("hub:refresh", refresh);
})();
