"""Which step comes after which, and when a case is due: the whole table, by hand."""

from datetime import UTC, date, datetime, timedelta

from memories.models import CaseState, CaseType, PrivacyCase
from memories.privacy.casework import workflow
from memories.privacy.casework.workflow import CaseVerb, Level
from tests.each import each

STATES = (
    "received",
    "verified",
    "scoped",
    "approved",
    "running",
    "verifying",
    "completed",
    "refused",
    "on_hold",
    "failed",
)
# For each of these states: + it is taken; else what stands in the way.
WAYS = {"u": "case_unverified", "s": "case_state", "b": "case_begun", "h": "case_held", "c": "case_closed"}
ERASURE = {
    "verify": "+sssbbcchs",
    "scope": "u++sbbcchs",
    "approve": "us+sbbcchs",
    "run": "usssbbcch+",
    "hold": "++++bbcch+",
    "release": "ssssbbcc+s",
    "extend": "++++++cc++",
    "tell": "u+++++cc++",
    "refuse": "++++bbcc+b",
}
EXPORT = {
    "verify": "+sssbbcchs",
    "scope": "u++sbbcchs",
    "run": "u++sbbcch+",
    "hold": "++++bbcch+",
    "release": "ssssbbcc+s",
    "extend": "++++++cc++",
    "refuse": "++++bbcc++",
}
DECISION = {
    "verify": "+sssbbcchs",
    "complete": "u+ssbbcchs",
    "hold": "++++bbcch+",
    "release": "ssssbbcc+s",
    "extend": "++++++cc++",
    "tell": "u+++++cc++",
    "refuse": "++++bbcc++",
}
TABLE = {
    "erasure": ERASURE,
    "access": EXPORT,
    "portability": EXPORT,
    "rectification": DECISION,
    "restriction": DECISION,
}
VERBS = [verb for verb in CaseVerb if verb != CaseVerb.OPEN]
RECEIVED = datetime(2026, 11, 3, 9, 12, tzinfo=UTC)


def case(kind: str, state: str, **over: object) -> PrivacyCase:
    held = {"held_from": "received"} if state == "on_hold" else {}
    times = {"received_at": RECEIVED, "due_at": workflow.due_at(RECEIVED)}
    return PrivacyCase(**{"type": kind, "state": state, **held, **times, **over})


def code(verb: CaseVerb, of: PrivacyCase) -> str:
    refusal = workflow.refusal_of(verb, of)
    return refusal.code if refusal else ""


def test_the_table_is_about_all_states_and_types() -> None:
    assert set(STATES) == set(CaseState)
    assert set(TABLE) == set(CaseType)
    assert set(workflow.MOVES) == set(VERBS)


@each("kind", CaseType)
@each("verb", VERBS)
def test_each_step_from_each_state(kind: CaseType, verb: CaseVerb) -> None:
    told = TABLE[kind].get(verb)
    expected = {s: "case_type" if told is None else WAYS.get(told[n], "") for n, s in enumerate(STATES)}
    assert {state: code(verb, case(kind, state)) for state in STATES} == expected
    # What can be done is what is not refused.
    assert {state for state in STATES if verb in workflow.verbs_of(case(kind, state))} == {
        state for state, refusal in expected.items() if not refusal
    }


def test_an_erasure_that_failed_is_not_refused_by_way_of_a_hold() -> None:
    held = case("erasure", "on_hold", held_from="failed")
    assert code(CaseVerb.REFUSE, held) == "case_begun"
    assert "refuse" not in workflow.verbs_of(held)
    # An export that failed has taken nothing away.
    assert code(CaseVerb.REFUSE, case("access", "on_hold", held_from="failed")) == ""


def test_a_case_is_extended_once() -> None:
    assert code(CaseVerb.EXTEND, case("access", "verified", extended_at=RECEIVED)) == "case_extended"
    assert code(CaseVerb.EXTEND, case("access", "verified")) == ""


def day(year: int, month: int, number: int, hour: int = 9) -> datetime:
    return datetime(year, month, number, hour, tzinfo=UTC)


@each(
    ("received", "further", "due"),
    [
        (day(2026, 11, 3), 0, day(2026, 12, 3)),
        (day(2026, 12, 3), 0, day(2027, 1, 3)),
        (day(2026, 12, 31), 0, day(2027, 1, 31)),
        (day(2027, 1, 28), 0, day(2027, 2, 28)),
        (day(2027, 1, 31), 0, day(2027, 2, 28)),
        (day(2028, 1, 31), 0, day(2028, 2, 29)),
        (day(2028, 2, 29), 0, day(2028, 3, 29)),
        (day(2026, 5, 31, 23), 0, day(2026, 6, 30, 23)),
        # Of the receipt's day, not of the shortened month.
        (day(2027, 1, 31), 1, day(2027, 3, 31)),
        (day(2027, 1, 31), 2, day(2027, 4, 30)),
        (day(2026, 11, 3), 2, day(2027, 2, 3)),
        (day(2026, 10, 31), 1, day(2026, 12, 31)),
        (day(2026, 11, 30), 2, day(2027, 2, 28)),
        # Summer time ends in between, in much of the world.
        (day(2026, 10, 24, 1), 0, day(2026, 11, 24, 1)),
    ],
)
def test_due_dates(received: datetime, further: int, due: datetime) -> None:
    assert workflow.due_at(received, further_months=further) == due


@each(
    ("before_due", "level"),
    [
        (timedelta(days=30), Level.OK),
        (timedelta(days=7, seconds=1), Level.OK),
        (timedelta(days=7), Level.SOON),
        (timedelta(days=2, seconds=1), Level.SOON),
        (timedelta(days=2), Level.URGENT),
        (timedelta(0), Level.URGENT),
        (timedelta(seconds=-1), Level.OVERDUE),
        (timedelta(days=-3), Level.OVERDUE),
    ],
)
def test_how_urgent_it_is(before_due: timedelta, level: Level) -> None:
    some = case("access", "verified")
    assert workflow.level_of(some, some.due_at - before_due) == level


@each("state", ["completed", "refused"])
def test_what_is_closed_is_not_urgent(state: str) -> None:
    some = case("access", state)
    assert workflow.level_of(some, some.due_at + timedelta(days=9)) == Level.OK
    some.state = "verified"
    assert workflow.level_of(some, some.due_at + timedelta(days=9)) == Level.OVERDUE


def test_notice_of_an_extension_within_the_first_month() -> None:
    extended = case("access", "verified", due_at=workflow.due_at(RECEIVED, further_months=2))
    assert workflow.notice_days(extended) == (date(2026, 11, 3), date(2026, 12, 3))
