"""The temporal graph: what holds between named things about a person, and when.

Facts with a key and a value come in (`following.py`, called with every revision of a fact); what keys and operators
state comes from `curation/graph/`. Out go entities and triples as they hold at a moment (`reading.py`). It writes
`GraphEntity` and `GraphTriple`.
"""
