"""A seeded person over simulated days: what fades, what stays and why (`python -m evals.fading`)."""
