"""The scripted model of triples: the run finds what is wrong, and nothing where nothing is."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from evals.relations import replaying
from evals.talks import Session, Talk
from memories.models import EndUser, FactEvidence, GraphTriple, Status, Turn


def said(role: str, content: str, day: int) -> dict[str, str]:
    return {"role": role, "content": content, "timestamp": f"2026-03-{day:02}T10:00:00+00:00"}


TALK = Talk(
    "made-up",
    [
        Session("S1", [said("user", "I met Anna at Acme, and Anna knows Bert", 1), said("assistant", "Ask Carla", 1)]),
        Session("S2", [said("user", "Today I went with Dora to Leiden", 2), said("assistant", "Fine", 2)]),
    ],
)


@pytest.fixture
def person(db: None, settings: Any) -> EndUser:
    settings.MEMORYHUB_LLM = "scripted"
    with replaying.answering():
        return replaying.replay(replaying.tenant(), TALK)


def test_each_has_evidence_and_ends_with_its_fact(person: EndUser) -> None:
    checked = replaying.look(person, TALK)
    assert checked.wrong == []
    name, turns, calls, *_, ended, _ = checked.row
    assert (name, turns, calls) == ("made-up", 4, 2)
    rows = GraphTriple.objects.select_related("fact").order_by("fact__created_at", "place")
    over = [one for one in rows if one.fact and one.fact.status == Status.SUPERSEDED]
    # "Talked of Bert last": its key and value, and three relations of the model's.
    assert [one.place for one in over] == [0, 1, 2, 3]
    assert {one.valid_to for one in over} == {over[0].fact.valid_to if over[0].fact else None}
    assert ended == len(over)
    assert replaying.table([checked]).count("\n") == 3


def test_what_is_wrong_is_found(person: EndUser) -> None:
    spoilt: list[tuple[Callable[[], object], str]] = [
        (lambda: FactEvidence.objects.all().delete(), "has no evidence"),
        (lambda: GraphTriple.objects.exclude(valid_to=None).update(valid_to=None), "outlives its fact"),
        (lambda: Turn.objects.filter(content__contains="Dora").update(content="Nobody"), "names what"),
    ]
    for spoil, fault in spoilt:
        with transaction.atomic():
            spoil()
            assert any(fault in one for one in replaying.look(person, TALK).wrong), fault
            transaction.set_rollback(True)
