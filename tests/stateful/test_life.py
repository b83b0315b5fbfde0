"""Anybody does anything in any order: what must hold holds after each step (`--long`: many lives, each a long one)."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.stateful.life import Life

SHORT = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=8,
    stateful_step_count=20,
    # A failure is told at once: --long makes it small.
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
LONG = settings(
    SHORT,
    phases=[Phase.generate, Phase.shrink],
    derandomize=False,
    max_examples=1_000,
    stateful_step_count=60,
    print_blob=True,
)


def test_whatever_happens_what_must_hold_holds(simulated: None, request: pytest.FixtureRequest) -> None:
    profile = LONG if request.config.getoption("--long") else SHORT
    run_state_machine_as_test(Life, settings=profile)
