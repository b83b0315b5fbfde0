"""The verbs of privacy cases: admin, API and commands call these, and nothing else changes a case but its run.

Each locks the case and then the person, raises the case's version by one, leaves an audit event, and returns the case.
`expected_version` is of the case as whoever decides saw it; None when nobody looked.
"""

from memories.privacy.casework.changing import find_case
from memories.privacy.casework.deciding import (
    approve_case,
    complete_case,
    extend_case,
    refuse_case,
    run_case,
    tell_recipients,
)
from memories.privacy.casework.holding import hold_case, release_case
from memories.privacy.casework.opening import open_case, scope_case, verify_identity
from memories.privacy.casework.restricting import cases_of
from memories.privacy.casework.stages import Level, Verb, days_left, level_of, verbs_of

__all__ = [
    "Level",
    "Verb",
    "approve_case",
    "cases_of",
    "complete_case",
    "days_left",
    "extend_case",
    "find_case",
    "hold_case",
    "level_of",
    "open_case",
    "refuse_case",
    "release_case",
    "run_case",
    "scope_case",
    "tell_recipients",
    "verbs_of",
    "verify_identity",
]
