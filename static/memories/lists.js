// On a narrow screen the tabs over a list scroll sideways: the present one is brought into view.
const present = document.querySelector(".hub-tab[aria-current]");
if (present) {
  const row = present.parentElement;
  row.scrollLeft = present.offsetLeft - row.offsetLeft - (row.clientWidth - present.offsetWidth) / 2;
}

// Unfold's buttons that are icons alone: their titles are their names, and the field beside it names the search.
for (const link of document.querySelectorAll(".sortoptions a[title]")) {
  link.setAttribute("aria-label", link.title);
}
const search = document.getElementById("searchbar-submit");
if (search) {
  search.title = document.getElementById("searchbar").placeholder;
  search.setAttribute("aria-label", search.title);
}
