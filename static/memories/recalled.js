// A hit is set right without leaving the ranking: the verb is posted, then the same question is asked again.
(() => {
  const done = document.getElementById("recalled-done");

  const carryOut = async (form) => {
    const answer = await fetch(form.action, { method: "POST", body: new FormData(form), credentials: "same-origin" });
    // What was done leads on. Whatever else it is, the fact's own page tells it, with what was typed.
    if (!answer.redirected) {
      throw new Error(String(answer.status));
    }
    done.hidden = false;
    document.getElementById("recall-form").requestSubmit();
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
