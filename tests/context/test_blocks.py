"""The two blocks of a context: what stands in every context, and what a query brings."""

from typing import Any

import pytest

from memories.context import context
from memories.context.context import Context, ContextBlock, ContextRequest
from memories.context.parts import DEFAULT_INCLUDE
from memories.llm import tokens
from memories.llm.tokenizers import CONSERVATIVE, TOKENIZERS
from memories.models import EndUser, Fact
from tests import factories
from tests.factories import NOW
from tests.vectors import embed_all

pytestmark = pytest.mark.django_db


@pytest.fixture
def person() -> EndUser:
    person = factories.end_user(external_id="u1")
    factories.profile_section(person, "work_context", "Runs a bakery.")
    factories.profile_section(person, "earlier_context", "Worked as a cook.")
    factories.fact(person, "Ships with DHL", category="correction", source_error="UPS")
    factories.fact(person, "Likes tea", category="preference")
    factories.fact(person, "Has a dog called Rex", pinned=True)
    factories.fact(person, "The oven broke in May")
    factories.session(person, [("user", "My oven is a Miele"), ("user", "Rex is ill")])
    embed_all(person)
    return person


def build(person: EndUser, **over: Any) -> Context:
    given = {"user_id": person.external_id, "blocks": True, **over}
    return context.build(tenant=person.tenant, request=ContextRequest(**given), now=NOW)


def parts(built: Context) -> tuple[ContextBlock, ContextBlock]:
    assert built.stable is not None
    assert built.volatile is not None
    return built.stable, built.volatile


def kinds(block: ContextBlock) -> list[str]:
    return sorted(item["kind"] for item in block.items)


def test_what_stands_in_every_context_is_stable_whatever_is_asked(person: EndUser) -> None:
    stable, volatile = parts(build(person, query="Which oven do I have?"))
    for line in ("Runs a bakery.", "Worked as a cook.", "Ships with DHL", "Likes tea", "Has a dog called Rex"):
        assert line in stable.memory
        assert line not in volatile.memory
    assert kinds(stable) == ["fact"] * 3 + ["profile"] * 2
    assert "My oven is a Miele" in volatile.memory
    assert "The oven broke in May" in volatile.memory
    other, _ = parts(build(person, query="How is Rex?"))
    assert (other.memory, other.revision) == (stable.memory, stable.revision)


def test_a_stable_block_changes_when_something_in_it_does(person: EndUser) -> None:
    before, _ = parts(build(person, query="oven"))
    factories.fact(person, "Bakes on Sundays")
    Fact.objects.filter(content="Likes tea").update(importance=0.2, mentions=7)
    assert parts(build(person, query="oven"))[0].revision == before.revision
    Fact.objects.filter(content="Likes tea").update(content="Likes coffee")
    after, _ = parts(build(person, query="oven"))
    assert after.revision != before.revision
    assert "Likes coffee" in after.memory


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_both_are_inside_the_budget(person: EndUser, tokenizer: str) -> None:
    def counted(text: str) -> int:
        return tokens.count(text, tokenizer) if text else 0

    sizes = set()
    for budget in (0, 30, 60, 90, 120, 150, 180, 250, 2000):
        built = build(person, query="oven", max_tokens=budget, tokenizer=tokenizer)
        stable, volatile = parts(built)
        assert counted(built.memory) <= built.token_count <= budget
        # Each block has a template of its own there.
        assert built.token_count == counted(built.memory) or (tokenizer == CONSERVATIVE and volatile.memory)
        assert (stable.token_count, volatile.token_count) == (counted(stable.memory), counted(volatile.memory))
        assert built.memory == "\n".join(one.memory for one in (stable, volatile) if one.memory)
        assert built.items == stable.items + volatile.items
        assert volatile.memory == "" or len(stable.items) == 5
        sizes.add((len(stable.items), len(volatile.items)))
    assert len(sizes) > 4


def test_lines_that_the_conversation_has_are_not_told_again(person: EndUser) -> None:
    stable, volatile = parts(build(person, query="oven"))
    assert volatile.told
    again, rest = parts(build(person, query="oven", told=stable.told | volatile.told))
    assert (again.memory, rest.memory) == (stable.memory, "")
    factories.fact(person, "The oven has five trays")
    embed_all(person)
    _, more = parts(build(person, query="oven", told=stable.told | volatile.told))
    assert [line for line in more.memory.split("\n") if line.startswith("- ")] == [
        line for line in more.memory.split("\n") if "five trays" in line
    ]
    assert "five trays" in more.memory


def test_nothing_remembered_and_no_blocks_asked_for(person: EndUser) -> None:
    assert parts(build(factories.end_user(external_id="new"))) == (ContextBlock(), ContextBlock())
    plain = build(person, blocks=False)
    assert (plain.stable, plain.volatile) == (None, None)
    assert plain.memory.count("<memory>") == 1


def test_in_messages_the_volatile_block_stands_before_what_waits_for_an_answer(person: EndUser) -> None:
    factories.session(person, [("user", "Hey"), ("assistant", "Hello"), ("user", "And my oven?")], session_id="now")
    built = build(person, query="oven", session_id="now", include=DEFAULT_INCLUDE | {"working_memory"})
    stable, volatile = parts(built)
    assert built.messages is not None
    assert [message["content"] for message in built.messages] == [
        stable.memory,
        "Hey",
        "Hello",
        volatile.memory,
        "And my oven?",
    ]
