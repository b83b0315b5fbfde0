"""The name under which tasks of django-q2 find the answer to the roll call (`memories/jobs/roll_call.py`)."""

from memories.jobs.roll_call import answer_roll_call

__all__ = ["answer_roll_call"]
