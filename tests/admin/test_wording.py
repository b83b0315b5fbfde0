"""Words for times and failures, by tables of cases."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.utils import timezone

import memories
from memories.admin.site import wording
from memories.exceptions import ModelError, PersonRestricted
from memories.privacy.casework.workflow import CaseVerb
from memories.queue.leases import WORKER_LOST
from memories.queue.retry_policy import INTERNAL_ERROR
from memories.verbs import VERBS
from tests.each import each

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
VERB = re.compile(r"""\bverb=["'](\w+)["']""")


@each(
    ("distance", "words"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=5), "in a moment"),
        (timedelta(minutes=-5), "5 min ago"),
        (timedelta(minutes=58, seconds=59), "in 59 min"),
        (timedelta(minutes=59, seconds=59), "in 1 h"),
        (timedelta(days=2, hours=23, minutes=59, seconds=58), "in 3 days"),
        (timedelta(hours=-3), "3 h ago"),
        (timedelta(hours=-24), "1 day ago"),
        (timedelta(days=-2, hours=-23), "2 days ago"),
        (timedelta(days=-29, hours=-23), "29 days ago"),
        (timedelta(days=-30), "22 Oct 2026"),
        (timedelta(days=102), "3 Mar 2027"),
    ],
)
def test_relative(distance: timedelta, words: str) -> None:
    assert wording.relative(NOW + distance, now=NOW) == words


def test_exact_follows_the_zone_in_force() -> None:
    assert wording.exact(NOW) == "21 Nov 2026, 09:00:00 UTC"
    with timezone.override("Asia/Shanghai"):
        assert wording.exact(NOW) == "21 Nov 2026, 17:00:00 CST"


def test_every_failure_of_the_model_has_a_sentence() -> None:
    assert ModelError.__subclasses__()
    for error in ModelError.__subclasses__():
        assert wording.explain_failure(error.code) == str(error())


@each("code", [INTERNAL_ERROR, WORKER_LOST, PersonRestricted.code])
def test_every_other_failure_of_an_attempt_has_a_sentence(code: str) -> None:
    assert wording.explain_failure(code) != code


def test_an_unknown_failure_is_shown_as_it_is() -> None:
    assert wording.explain_failure("sunspots") == "sunspots"


def verbs_of_code() -> Iterator[str]:
    """What is passed as `verb=…` anywhere, the table of the cases, and those that are passed by place."""
    for path in Path(memories.__file__).parent.rglob("*.py"):
        yield from VERB.findall(path.read_text(encoding="utf-8"))
    yield from CaseVerb
    yield from ("erase", "link", "download", "hold")


def test_every_verb_of_the_audit_trail_has_words() -> None:
    found = set(verbs_of_code())
    assert {"rotate", "retry_parked", "verify"} <= found
    assert found <= VERBS.keys()
