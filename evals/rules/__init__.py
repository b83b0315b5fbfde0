"""What the hub keeps without a model of labelled utterances: `python -m evals.rules`."""
