"""Imports what people already have: conversations, memories, files and items of other systems.

In: files, folders, archives and databases, each read by a source (`sources.py`) that yields what is in it
(`records.py`) with whose it is, when it was said, and a reason for what it leaves out.
Out: turns, facts, memory files and items of the store, each stored once, through the same checks as a request's body.
Writes what `capture/`, `curation/`, `files/` and `store/` write.
"""
