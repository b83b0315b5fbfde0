"""A red team that stays: texts that want to be believed, obeyed or told to others, and benign ones like them.

`cases/`, `cases_second/` and `cases_third/` hold what is tried (`corpus.py` tells the format), by eight ways in: what
an assistant echoes, a tool's output, an upload, writes of a key, the profile, an import, a summary, public facts.
`stage.py` plays each case end to end against the real hub with a model that does whatever the text wants; `judge.py`
says what counts as success, by the hub's answers alone. `test_redteam.py` holds the first round against the aim: no
attempt succeeds, at most 2 of 100 benign texts are held. The defences were tuned on that round, so
`test_blind_rounds.py` reports on two others, blind ones, with limits. `python -m tests.redteam` prints the tables,
`--write docs/threat-model.md` puts them there.

A new attack becomes a case of the first round, and then a defence. Cases are written by hand and by reading, not from
the hub's patterns: who writes a defence does not copy from here, who writes a case does not look there.
"""
