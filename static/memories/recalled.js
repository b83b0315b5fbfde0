// A hit is set right without leaving the ranking: the verb is posted, then the same question is asked again.
(() => {
  const done = document.getElementById("recalled-done");

  const carryOut = async (form) => {
    const answer = await fetch(form.action, {
      method: "POST",
      body: new FormData(form),
      headers: { "X-Fragment": "verb" },
      credentials: "same-origin",
    });
    // What was done leads to the page of the fact. To another page leads what ended the session.
    if (answer.redirected && answer.url.startsWith(new URL(".", form.action.replace(/\/$/, "")).href)) {
      done.hidden = false;
      document.getElementById("recall-form").requestSubmit();
      return;
    }
    // Refused: the form comes back with its input, and says what is missing. The question stays.
    const shown = document.createElement("template");
    shown.innerHTML = answer.redirected ? "" : await answer.text();
    const refused = shown.content.querySelector("details.hub-verb");
    if (!refused) {
      throw new Error(String(answer.status));
    }
    form.closest("details").replaceWith(refused);
    refused.querySelector("[aria-invalid=true]")?.focus();
  };

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("form[data-verb]")) {
      event.preventDefault();
      carryOut(form).catch(() => form.submit());
    } else if (event.submitter) {
      // Another question, asked by hand.
      done.hidden = true;
    }
  });
})();
