"""Skills: what is served to whom, what trials of it say, and on which trajectories each of its texts rests.

`attempts.py` and `rules.py` find what trajectories have in common; `rendering.py` writes SKILL.md; `serving.py` gives
it; `trials.py` counts how sessions with it end; `founding.py` takes texts away with the trajectories that they rested
on. `curation/skills/` proposes and decides.
"""
