"""Sentences from which the hub learns what speaks to a model by its meaning, and how that is learned.

`attacks.txt` and `benign.txt` are written for this: a language and a sentence a line. `learning.py` adds those of the
tables of tests/tables and finds the line between; `python -m evals.claims` writes it to
memories/text/injection/data, and tells how well it does on what it did not see. The texts of tests/redteam are not
learned from: they measure.
"""
