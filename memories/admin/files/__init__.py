"""Memory files: the list, a person's files as a tree, a file with its versions, and its verbs."""
