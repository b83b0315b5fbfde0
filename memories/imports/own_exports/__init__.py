"""A hub's own export of a person comes in: `reading.py` yields its lists, `storing.py` stores their rows by what
`lists.py` says of each. In: `data.json` of an export. Out: the rows as they were, under ids of their own."""
