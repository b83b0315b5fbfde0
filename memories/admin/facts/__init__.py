"""Facts: the list, the page, and what is done to one or to many."""
