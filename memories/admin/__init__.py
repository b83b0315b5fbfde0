"""The operators' pages. They read the tables and call the verbs of `curation`; they never write by themselves.

`site/site.py` lists all pages. Whoever first asks Django for its site, as the addresses do, loads them.
"""
