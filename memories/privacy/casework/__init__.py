"""What the verbs of a privacy case (`cases.py`) share: the workflow, the frame of a step, and the restriction."""
