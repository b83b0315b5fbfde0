"""The stores of personal data: how their rows are counted, exported, erased and checked afterwards.

`linked.py`: tables with foreign keys that lead to a person. `unlinked.py`: everything else of a person. `readers.py`:
facts of others that name the person. `waivers.py`: what holds nothing personal, and why.
"""
