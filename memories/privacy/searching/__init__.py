"""How the verification of an erasure searches: the terms, the tables and files, decoding, owners of rows, verdicts.

Nothing here uses the stores' code to count or delete. The search reads what the database's catalogue lists, so a table
that nobody registered is searched as well. `mentions.py` alone serves the preview of a case.
"""
