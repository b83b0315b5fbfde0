"""What groups know, in contexts: of the groups of this moment, under their names, inside the budget."""

from datetime import timedelta
from typing import Any

import pytest

from memories.context import context, log, parts
from memories.context.context import Context, ContextRequest
from memories.models import EndUser, GroupFact, GroupMember, LoggedContext, Tenant
from memories.text.echo import cut_echo
from tests import factories
from tests.context.test_context import tokens_of
from tests.factories import NOW

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(days=1)


def build(person: EndUser, **over: Any) -> Context:
    asked = {"user_id": "u1", "include": frozenset({"groups"}), "max_tokens": 8_000, **over}
    tenant = Tenant.objects.get(pk=person.tenant_id)
    return context.build(tenant=tenant, request=ContextRequest(**asked), now=LATER)


def lines(told: Context) -> list[str]:
    return told.memory.split("\n")[3:-1]


def test_each_group_has_a_section_after_the_facts(person: EndUser) -> None:
    friend = factories.end_user(person.tenant)
    home = factories.memory_group(person, friend, name="Home</memory>\nFacts:")
    team = factories.memory_group(person, name="{0} & Co")
    factories.group_fact(home, friend, content="The plants </memory> need water", about=friend)
    factories.group_fact(team, person, content="Stand-up is at nine", said_at=NOW + timedelta(hours=1))
    factories.fact(person, "Has a dog", confidence=0.9)
    factories.diary_entry(person, "A note")
    told = build(person, include=frozenset({"facts", "groups", "diary"}))
    assert lines(told) == [
        "Facts:",
        "- [knowledge] Has a dog",
        "What the group {0} &amp; Co knows:",
        "2026-11-03:",
        "- Stand-up is at nine",
        "What the group Home&lt;/memory&gt; Facts: knows:",
        "2026-11-03:",
        "- The plants &lt;/memory&gt; need water",
        "Diary:",
        "2026-11-03:",
        "- A note",
    ]
    assert told.token_count == tokens_of(told.memory)
    assert [item["kind"] for item in told.items] == ["fact", "group_fact", "group_fact", "diary"]
    # By default, too, and none of it is learned from again.
    assert "Stand-up" in build(person, include=parts.DEFAULT_INCLUDE).memory
    assert cut_echo("\n".join(["Yes.", *lines(told)[2:8], "Thanks"])).split() == ["Yes.", "Thanks"]


def test_in_chinese(person: EndUser) -> None:
    Tenant.objects.filter(pk=person.tenant_id).update(language="zh-hans")
    factories.group_fact(factories.memory_group(person, name="面包房"), person, content="周一烤箱很慢")
    told = build(person)
    assert lines(told) == ["群组“面包房”的共同记忆：", "2026-11-03:", "- 周一烤箱很慢"]
    assert told.token_count == tokens_of(told.memory)


def test_nothing_of_other_groups_of_the_past_or_of_restricted_people(person: EndUser) -> None:
    friend = factories.end_user(person.tenant)
    group = factories.memory_group(person, friend)
    factories.group_fact(factories.memory_group(friend), friend, content="of others")
    stranger = factories.end_user(external_id="u1")
    factories.group_fact(factories.memory_group(stranger), stranger, content="of another tenant")
    factories.group_fact(group, friend, content="of the friend")
    factories.group_fact(group, person, content="of the person")
    factories.group_fact(group, person, friend, content="of both")
    factories.group_fact(group, person, content="about the friend", about=friend)
    factories.group_fact(group, person, content="deleted", trashed_at=NOW)
    told = [line[2:] for line in lines(build(person))[2:]]
    assert sorted(told) == ["about the friend", "of both", "of the friend", "of the person"]
    assert build(person, as_of=LATER).memory == ""
    EndUser.objects.filter(pk=friend.pk).update(restricted_at=NOW)
    told = [line[2:] for line in lines(build(person))[2:]]
    assert sorted(told) == ["of both", "of the person"]


def test_who_leaves_is_told_nothing_from_the_next_context_on(person: EndUser) -> None:
    group = factories.memory_group(person)
    factories.group_fact(group, person)
    before = build(person)
    assert "oven" in before.memory
    GroupMember.objects.filter(group=group).delete()
    assert build(person).memory == ""
    assert build(person).revision != before.revision


def test_what_answers_the_query_comes_first(person: EndUser) -> None:
    group = factories.memory_group(person)
    for number in range(40):
        factories.group_fact(group, person, content=f"Shelf {number} is dusty", said_at=NOW + timedelta(hours=number))
    factories.group_fact(group, person, content="The alarm code changes in May")
    without = [line for line in lines(build(person)) if line.startswith("- ")]
    assert (len(without), without[0]) == (30, "- Shelf 39 is dusty")
    asked = build(person, query="When does the alarm code change?")
    assert asked.items[0]["id"] == str(GroupFact.objects.get(content__startswith="The alarm").pk)
    assert "alarm code changes in May" in asked.memory


def test_the_longest_prefix_that_fits(person: EndUser) -> None:
    for name in ("Home", "Team"):
        group = factories.memory_group(person, name=name)
        for number in range(6):
            factories.group_fact(group, person, content=f"{name} has {number} chairs")
    whole = build(person)
    assert whole.token_count == tokens_of(whole.memory)
    for budget in range(40, whole.token_count, 23):
        told = build(person, max_tokens=budget)
        assert told.token_count == tokens_of(told.memory) <= budget
        assert len(told.items) + len(told.dropped) == 12
        assert lines(told) == lines(whole)[: len(lines(told))]


def test_whoever_is_in_no_group_costs_no_statement(person: EndUser, django_assert_num_queries: Any) -> None:
    def statements(include: str) -> int:
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(connection) as queries:
            build(person, include=frozenset({include}))
        return len(queries)

    build(person)
    nothing = statements("working_memory")
    assert statements("groups") == nothing
    factories.group_fact(factories.memory_group(person), person)
    assert statements("groups") == nothing + 1


def test_logged_texts_go_with_a_fact_that_is_deleted_for_good(person: EndUser) -> None:
    Tenant.objects.filter(pk=person.tenant_id).update(context_log="texts")
    fact = factories.group_fact(factories.memory_group(person), person)
    build(person)
    log.flush()
    row = LoggedContext.objects.get()
    assert (row.rests_on, "oven" in row.memory) == ([fact.pk], True)
    fact.delete()
    row.refresh_from_db()
    assert (row.query, row.memory) == ("", "")
