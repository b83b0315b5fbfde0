"""The hub beside its peers: the newest packages of other memory systems, on the same rows, questions and machine.

`python -m benchmarks.compare` (make compare) gives all of them the same people, texts and vectors (`ground.py`), asks
them by turns (`searching.py`), also about the lives of shared sets (`answering.py`), erases and kills (`breaking.py`),
and writes docs/compare.md, what is worse for the hub first (`page.py`). A peer is a script and a description in
`peers/`; another one needs nothing else. A description without a script says why a peer cannot be run.
"""
