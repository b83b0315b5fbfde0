"""Skills: proposed from what trajectories have in common, served once reviewed, tried, and withdrawn when they harm.

`proposing.py` finds them, with `rules.py` or a model; `checking.py` says what may not be shared; `serving.py` gives
them; `trials.py` counts how sessions with them end; `founding.py` keeps each text on the trajectories that it rests on.
"""
