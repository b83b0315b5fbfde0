"""The steps of a privacy case, and the table of which comes after which."""
