// A hit is set right without leaving the ranking: the verb is posted, then the same question is asked again.
(() => {
  const done = document.getElementById("recalled-done");

  const say = (text, refused) => {
    done.textContent = text;
    done.classList.toggle("hub-not", refused);
    done.hidden = false;
  };

  const carryOut = async (form) => {
    const answer = await fetch(form.action, { method: "POST", body: new FormData(form), credentials: "same-origin" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const told = answer.redirected ? page.querySelector("[data-told], .hub-done") : page.querySelector(".hub-refused");
    if (!told) {
      throw new Error(String(answer.status));
    }
    say(told.textContent.trim(), !answer.redirected);
    if (answer.redirected) {
      document.getElementById("recall-form").requestSubmit();
    }
  };

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("form[data-verb]")) {
      event.preventDefault();
      carryOut(form).catch(() => form.submit());
    }
  });
})();
