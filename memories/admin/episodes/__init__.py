"""Episodes: the list, the page, and their verbs."""
