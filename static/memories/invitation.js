// Puts what follows the # of an invitation's link into the form, and takes it out of the address and the history.
(() => {
  const form = document.getElementById("invitation");
  if (!form) {
    return;
  }
  const field = form.querySelector("[name=secret]");

  function take() {
    if (location.hash.length > 1) {
      field.value = location.hash.slice(1);
      history.replaceState(null, "", location.pathname);
    }
    // Who opened the page without a link pastes it.
    form.querySelector("[data-secret]").hidden = Boolean(field.value);
    (field.value ? form.querySelector("[name=password]") : field).focus();
  }

  addEventListener("hashchange", take);
  take();
})();
