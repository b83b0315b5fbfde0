"""Dreams about a person's memory files over the API."""
