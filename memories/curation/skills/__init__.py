"""Skills that are proposed and decided: `proposing.py` is the background pass, `checking.py` says what may not be
shared, `deciding.py` has the operators' verbs."""
