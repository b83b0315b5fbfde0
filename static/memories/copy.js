// Copies the value of the field named by a button's data-copy; without a clipboard it selects the field instead.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) {
    return;
  }
  const field = document.getElementById(button.dataset.copy);
  field.select();
  const label = button.querySelector("[data-copy-label]");
  try {
    await navigator.clipboard.writeText(field.value);
    label.textContent = button.dataset.copied;
  } catch {
    label.textContent = button.dataset.byHand;
  }
});
