"""What was said again, and what stands in a context already, is one line that names every turn."""

from datetime import timedelta
from typing import Any

import pytest

from memories.context import context, recalled_turns
from memories.context.context import Context, ContextRequest
from memories.llm import tokens
from memories.models import EndUser, Turn
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db
TALK = (
    ("user", "Where do I live?"),
    ("assistant", "In Leiden."),
    ("user", " where do I live "),
    ("user", "I live in Leiden"),
    ("assistant", "In  LEIDEN"),
    ("user", "Where do I live?!"),
)
TURNS = frozenset({"turns"})


def build(person: EndUser, **over: Any) -> Context:
    request = ContextRequest(**{"user_id": person.external_id, "include": TURNS, **over})
    return context.build(tenant=person.tenant, request=request, now=NOW)


def lines(built: Context) -> list[str]:
    return [line for line in built.memory.split("\n") if line.startswith("- ")]


def named(built: Context) -> list[tuple[int, bool]]:
    """(number of the turn, whether it has a line of its own), in the order of the numbers."""
    numbers = {str(turn.pk): turn.number for turn in Turn.objects.all()}
    return sorted((numbers[item["id"]], item["tokens"] > 0) for item in built.items if item["kind"] == "turn")


@pytest.mark.parametrize(
    "asked", [{}, {"query": "Leiden"}, {"query": "Leiden", "fill": "budget"}, {"include": frozenset({"unextracted"})}]
)
def test_each_text_of_a_speaker_is_one_line(person: EndUser, asked: dict[str, Any]) -> None:
    factories.session(person, TALK)
    built = build(person, **asked)
    assert lines(built) == ["- I live in Leiden", "- assistant: In LEIDEN", "- Where do I live?!"]
    assert named(built) == [(1, False), (2, False), (3, False), (4, True), (5, True), (6, True)]
    assert built.token_count == tokens.count(built.memory)
    # The other speaker says it in a line of its own.
    factories.session(person, [("user", "Delft"), ("assistant", "I live in Leiden")])
    assert "- assistant: I live in Leiden" in lines(build(person, **asked))


@pytest.mark.parametrize(
    ("query", "is_told"), [("where do i live", False), ("Where do I live now?", True), ("In Leiden?", True), ("", True)]
)
def test_the_present_question_is_not_told_to_itself(person: EndUser, query: str, is_told: bool) -> None:
    factories.session(person, TALK)
    for fill in ("relevant", "budget"):
        told = lines(build(person, query=query, fill=fill))
        assert any("Where do I live" in line for line in told) == is_told
        assert "- I live in Leiden" in told


def test_what_a_fact_says_is_the_facts_line(person: EndUser) -> None:
    factories.session(person, TALK)
    factories.fact(person, "I live in Leiden.")
    factories.fact(person, "Sings", category="preference")
    factories.session(person, [("user", "Sings!")], session_id="s2")
    asked = {"query": "Leiden", "include": frozenset({"facts", "turns"}), "blocks": True}
    built = build(person, **asked)
    assert sum("live in Leiden" in line for line in lines(built)) == 1
    assert (4, False) in named(built)
    assert built.volatile is not None
    # Nothing of it is told, or named, again.
    again = build(person, **asked, told=built.volatile.told, standing=frozenset())
    assert (lines(again), named(again)) == (["- [preference] Sings"], [])


def test_other_days_stand_behind_the_newest(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recalled_turns, "RELEVANT_LENGTHS", ((10, 40, 14),))
    monkeypatch.setattr(recalled_turns, "SPARE", 20)
    said = [("user", f"I ran {'far ' * 20}today. It was fine."), ("user", "Did I run today?")]
    days = [NOW - timedelta(days=back, hours=2) for back in (9, 8, 7, 6, 5, 5)]
    for place in (3, 0, 4, 1, 5, 2):
        session = factories.session(person, said, session_id=f"s{place}")
        Turn.objects.filter(session=session).update(timestamp=days[place])
    first, _, third, fourth, newest = sorted({at.date().isoformat() for at in days})
    built = build(person, query="today")
    run, asked = lines(built)
    assert run == f"- I ran {'far ' * 20}today. It was fine. (also on {first}, {third}, {fourth})"
    assert asked == "- Did I run today?"
    assert f"\n{newest}:\n{run}" in built.memory
    part, asked = lines(build(person, query="today", max_tokens=built.token_count - 1))
    assert part == f"- I ran {'far ' * 20}today. … (also on {first}, {third}, {fourth})"
    # The newest of what had been said by then.
    before = build(person, as_of=days[1] + timedelta(minutes=1)).memory
    assert (newest in before, f"(also on {first})" in before) == (False, True)


def test_what_the_conversation_shows_is_not_recalled_besides(person: EndUser) -> None:
    factories.session(person, TALK[:2], session_id="s1")
    factories.session(person, [*TALK[1:4], ("assistant", "And in Delft.")], session_id="s2")
    built = build(person, session_id="s1", include=TURNS | {"working_memory"})
    assert lines(built) == ["- I live in Leiden", "- assistant: And in Delft."]
    # Nor what an earlier request of the conversation was given.
    there = frozenset(("turn", str(turn.pk)) for turn in Turn.objects.filter(content="I live in Leiden"))
    factories.session(person, [("user", "I live in Leiden!")], session_id="s3")
    for told, is_told in ((frozenset(), True), (there, False)):
        assert ("- I live in Leiden!" in lines(build(person, query="Leiden", told=told))) == is_told
