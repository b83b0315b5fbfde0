"""Skills: the list, and the page of one with its versions, its trials, and the verbs on it."""
