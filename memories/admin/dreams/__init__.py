"""Dreams: the list, the page of one with its edits side by side, and its verbs."""
