// Tries what was entered (a model, an address of a webhook) in place, so that a typed key stays; without this the test is
// a page of its own.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-try]");
  if (!button) {
    return;
  }
  event.preventDefault();
  const place = document.getElementById(button.dataset.try);
  button.disabled = true;
  place.setAttribute("aria-busy", "true");
  // What came of the last test is not of this one.
  place.textContent = "";
  try {
    const answer = await fetch(button.formAction, {
      method: "POST",
      body: new FormData(button.form),
      headers: { "X-Fragment": "tested" },
      credentials: "same-origin",
    });
    // What is refused says why, too. Signed out meanwhile, the page leads to the form that signs in.
    if (answer.redirected || (!answer.ok && answer.status !== 400)) {
      throw new Error(String(answer.status));
    }
    place.innerHTML = await answer.text();
  } catch {
    place.textContent = place.dataset.failed;
  } finally {
    button.disabled = false;
    place.removeAttribute("aria-busy");
  }
});
