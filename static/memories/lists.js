// On a narrow screen the tabs over a list scroll sideways: the present one is brought into view.
const present = document.querySelector(".hub-tab[aria-current]");
if (present) {
  const row = present.parentElement;
  row.scrollLeft = present.offsetLeft - row.offsetLeft - (row.clientWidth - present.offsetWidth) / 2;
}
