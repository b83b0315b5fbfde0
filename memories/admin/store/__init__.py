"""Items of the store."""
