"""Quotes of deleted turns: gone from the facts, and from what these are found by."""

from memories.db import quotes
from memories.models import EndUser, Fact
from memories.scoring import terms
from tests import factories


def _words(fact: Fact) -> set[int]:
    packed = Fact.objects.get(pk=fact.pk).terms
    return set(terms.unpack(bytes(packed or b"")).ids.tolist())


def _has(fact: Fact, word: str) -> bool:
    return set(terms.count(word).ids.tolist()) <= _words(fact)


def test_a_fact_is_not_found_by_a_quote_that_is_gone(person: EndUser) -> None:
    turn = factories.session(person, [("user", "The zephyr keeps me awake")]).turns.get()
    fact, other = (
        factories.fact(person, content, raw="The zephyr keeps me awake", structured={"wind": "mild"})
        for content in ("Sleeps badly", "Is tired")
    )
    for one in (fact, other):
        one.set_text(one.content)
        one.save()
    factories.evidence(fact, turn, quote="The zephyr keeps me awake")
    assert _has(fact, "zephyr")
    quotes.forget(person.tenant_id, [turn.pk])
    fact.refresh_from_db()
    assert (fact.raw, _has(fact, "zephyr")) == ("", False)
    # What it says itself, and in its data, stays; so does what quotes another turn.
    assert _has(fact, "sleeps")
    assert _has(fact, "mild")
    assert _has(other, "zephyr")


def test_words_of_a_quote_count_once_and_lengthen_nothing() -> None:
    plain = terms.unpack(terms.pack("Drinks tea, tea and tea"))
    quoted = terms.unpack(terms.pack("Drinks tea, tea and tea", beside="I drink green green tea"))
    assert quoted.length == plain.length
    of = dict(zip(quoted.ids.tolist(), quoted.counts.tolist(), strict=True))
    assert of.items() >= dict(zip(plain.ids.tolist(), plain.counts.tolist(), strict=True)).items()
    assert of[int(terms.count("green").ids[0])] == 1
