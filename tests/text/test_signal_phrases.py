"""A tenant's own signs: how they are written, what they find, where they count, and that none takes long."""

import time
from typing import Any

import pytest
from pytest_django import Settings

from memories import conf
from memories.capture import ingest
from memories.capture.ingest import PostedMessage
from memories.extraction import consolidation
from memories.models import EndUser, Fact, SessionQueue
from memories.reconcile import gate
from memories.reconcile.gate import BatchEvidence
from memories.text import signal_phrases, signals
from memories.text.transcript import fed
from tests import factories
from tests.each import each
from tests.factories import NOW
from tests.model import Model

OWN = {"correction": ["back to square one", "打回重做"], "goal": ["our target is … this year", "今年要…达成"]}


def found(text: str, phrases: dict[str, list[str]] = OWN) -> list[str]:
    return signals.find([text], signal_phrases.patterns_of(phrases))


@each(
    ("text", "kinds"),
    [
        ("Please, BACK  to square one.", ["correction"]),
        ("这份报告打回重做。", ["correction"]),
        ("Our target is 40 customers this year.", ["goal"]),
        ("今年要把营收翻倍达成。", ["goal"]),
        ("我们now打回重做吧", ["correction"]),
        # No part of another word, not over a clause, not in quotation marks, not what others say.
        ("Throwback to square ones.", []),
        ("Our target is clear, and it rains this year.", []),
        ('He wrote "back to square one" there.', []),
        ("My boss said back to square one.", []),
        # The hub's patterns of these kinds no longer count; those of the others do.
        ("That's wrong.", []),
        ("My goal is to learn Dutch.", []),
        ("I prefer tea to coffee.", ["preference"]),
        ("我喜欢喝龙井茶。", ["preference"]),
    ],
)
def test_what_they_find(text: str, kinds: list[str]) -> None:
    assert found(text) == kinds


@each("text", ["That's wrong.", "My goal is to learn Dutch.", "你理解错了。"])
def test_without_any_the_hubs_own_count(text: str) -> None:
    assert found(text, {}) == found(text, {"correction": [], "goal": []}) == signals.find([text]) != []


def test_signs_of_expressions_are_letters() -> None:
    phrases = {"goal": ["(a+)+$", ".*", "[x"]}
    assert found("We want (a+)+$ now.", phrases) == ["goal"]
    assert found("We want aaaa now.", phrases) == []


def test_they_are_read_as_they_are_shown() -> None:
    lines = ("correction: back to square one", " correction : 打回重做", "", "goal： our  target is ... this year")
    text = "\n".join([*lines, "goal: our target is … this year"])
    phrases = signal_phrases.parse(text)
    assert phrases == {"correction": ["back to square one", "打回重做"], "goal": ["our target is … this year"]}
    assert signal_phrases.parse(signal_phrases.shown(phrases)) == phrases


@each(
    ("text", "says"),
    [
        ("goal: fine\nmood: happy", "Line 2: begin with one of"),
        ("back to square one", "Line 1: begin with one of"),
        ("goal: x", "Line 1: a phrase has 2 to 80 characters"),
        (f"goal: {'x' * 81}", "Line 1: a phrase has 2 to 80 characters"),
        ("goal: a … b … c", "Line 1: … may stand once"),
        ("goal: … this year", "Line 1: … may stand once"),
        ("goal: this year …", "Line 1: … may stand once"),
        ("\n".join(f"goal: phrase {n}" for n in range(101)), "at most 100 phrases"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        signal_phrases.parse(text)


def test_at_most_a_hundred_are_taken() -> None:
    assert len(signal_phrases.parse("\n".join(f"goal: phrase {n}" for n in range(100)))["goal"]) == 100


@each("unit", ["a", "a ", "ab … ", "甲", "a a a b "])
def test_the_worst_text_takes_no_time_to_speak_of(unit: str) -> None:
    phrases = {"goal": [f"{'a ' * 20}… {'a ' * 15}{n}" for n in range(50)] + [f"甲甲甲{n}…甲甲乙" for n in range(50)]}
    patterns = signal_phrases.patterns_of(phrases)
    begun = time.process_time()
    signals.find([(unit * 10_000)[:10_000]], patterns)
    # Far above what it takes (some hundredths), far below what backtracking would.
    assert time.process_time() - begun < 5


@pytest.mark.django_db
class TestWhereTheyCount:
    @pytest.fixture
    def person(self) -> EndUser:
        return factories.end_user(factories.tenant(signal_phrases=OWN))

    @pytest.fixture
    def stranger(self) -> EndUser:
        """Of a tenant without phrases."""
        return factories.end_user()

    def post(self, person: EndUser, text: str, *, flush: bool = False) -> ingest.Receipt:
        given: dict[str, Any] = {"user_id": person.external_id, "session_id": "s1", "agent_id": "", "flush": flush}
        return ingest.store_turns(tenant=person.tenant, messages=[PostedMessage("user", text)], **given)

    def test_at_ingest(self, person: EndUser, stranger: EndUser) -> None:
        assert self.post(person, OWN["correction"][1]).signals == ["correction"]
        assert self.post(stranger, OWN["correction"][1]).signals == []

    def test_in_what_comes_during_an_extraction(self, model: Model, person: EndUser) -> None:
        receipt = self.post(person, "Hello there", flush=True)
        assert receipt.session

        def meanwhile() -> dict[str, Any]:
            self.post(person, OWN["correction"][0])
            SessionQueue.objects.update(signals=[])
            return {"new_facts": []}

        model.answers.append(meanwhile)
        consolidation.consolidate(session_id=receipt.session.pk, now=NOW)
        assert SessionQueue.objects.get().signals == ["correction"]

    def test_for_rules_they_suggest(self, person: EndUser, stranger: EndUser, settings: Settings) -> None:
        settings.MEMORYHUB_LLM = conf.LLM_RULES
        for one in (person, stranger):
            receipt = self.post(one, "Our target is 40 customers this year.", flush=True)
            assert receipt.session
            consolidation.consolidate(session_id=receipt.session.pk, now=NOW)
        fact = Fact.objects.get()
        assert (fact.end_user, fact.category, fact.status) == (person, "goal", "pending")

    def test_for_what_wins_over_an_older_fact(self, person: EndUser) -> None:
        session = factories.session(person, [("user", OWN["correction"][1])])
        turns = {turn.number: turn for turn in fed(session.turns.order_by("number"))}
        own = signal_phrases.patterns_of(OWN)
        assert BatchEvidence(turns, frozenset(), own).decisive == {1}
        assert gate.BatchEvidence(turns, frozenset()).decisive == frozenset()
