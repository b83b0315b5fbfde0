"""Every kind of memory that a context can serve: what the log keeps of it at somebody else goes with the person."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.utils import timezone

from memories.admin.recall import logged as logged_page
from memories.context import context, log, parts, sent_blocks
from memories.context.context import ContextRequest
from memories.context.log import ContextBuffer, NotedContext
from memories.kinds.served import NAMES as KINDS
from memories.kinds.served import SERVED
from memories.models import EndUser, Fact, GroupEvidence, LoggedContext, SentBlock, Tenant
from memories.privacy import registry, running
from memories.privacy.stores.readers import BLOCKS_OF_OTHERS, CONTEXTS_OF_OTHERS
from tests import factories
from tests.factories import NOW
from tests.privacy.erased_world import erasure

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def home(settings: LazySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.HOME = tmp_path
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")
    monkeypatch.setattr(log, "_buffer", ContextBuffer())
    return tmp_path


def a_group_fact(about: EndUser) -> Any:
    """Another member says it of the person, who has said nothing."""
    speaker = factories.end_user(about.tenant)
    group = factories.memory_group(speaker, about)
    return factories.group_fact(group, speaker, content="Their colleague skates to work in winter", about=about)


def a_last_statement(of: EndUser) -> Any:
    """Nobody but the person said it, and it is about nobody."""
    return factories.group_fact(factories.memory_group(of), of, content="The oven of the bakery is broken")


# Kind → a row of it that goes with the person.
MADE: Mapping[str, Callable[[EndUser], Any]] = {
    "fact": lambda person: factories.fact(person, "The office is in Leiden", scope="public"),
    "profile": factories.profile_section,
    "triple": lambda person: factories.triple(person, "Aunt Wilhelmina", "lives_in", "Zoetermeer"),
    "group_fact": a_group_fact,
    "file": factories.memory_file,
    "diary": factories.diary_entry,
    "episode": lambda person: factories.episode(factories.session(person)),
    "document": lambda person: factories.attachment(
        factories.session(person).turns.get(), "Aunt Wilhelmina lives in Zoetermeer."
    ).passages.get(),
    "turn": lambda person: factories.session(person).turns.get(),
}
ROWS = [*MADE.items(), ("group_fact", a_last_statement)]
NAMES = [*MADE, "group_fact that nobody else said"]


def serve(reader: EndUser, *rows: tuple[str, Any]) -> LoggedContext:
    """As a context with these would be logged."""
    items = [(kind, str(row.pk), 0.5) for kind, row in rows]
    log.note(
        NotedContext(
            person=reader, agent_id="", session="", key_id=None, query="Who?", memory="<memory>…</memory>", items=items,
            left_out=0, token_count=40, max_tokens=2000, as_of=None, revision="r", took_ms=1, at=NOW,
        )
    )  # fmt: skip
    assert log.flush() == 1
    return LoggedContext.objects.get(end_user=reader)


def kept(row: LoggedContext) -> tuple[list[str], str, str, str, list[Any]]:
    row.refresh_from_db()
    return [item["id"] for item in row.items], row.query, row.memory, row.revision, row.rests_on


@pytest.mark.parametrize("texts", ["ids", "texts"])
def test_what_was_served_to_somebody_else_goes_with_the_person(texts: str) -> None:
    """Each kind was served to a reader of its own."""
    owner = factories.tenant(context_log=texts)
    person, rows = factories.end_user(owner), list[tuple[str, Any, Fact, LoggedContext]]()
    for name, (kind, make) in zip(NAMES, ROWS, strict=True):
        reader = factories.end_user(owner)
        theirs, own = make(person), factories.fact(reader, "Likes tea")
        rows.append((name, theirs, own, serve(reader, (kind, theirs), ("fact", own))))
        assert len(rows[-1][-1].items) == 2, name
        # What is told of both.
        assert (CONTEXTS_OF_OTHERS.count(person), CONTEXTS_OF_OTHERS.count(reader)) == (len(rows), 0), name
    told = sorted(one["context"] for one in CONTEXTS_OF_OTHERS.export_rows(person))
    assert told == sorted(str(row.pk) for *_, row in rows)
    done = running.carry_out(case_id=erasure(person).pk, now=timezone.now())
    assert (done.state, done.findings["hits"]) == ("completed", {})
    for name, theirs, own, row in rows:
        items, *said, rests_on = kept(row)
        assert (items, said) == ([str(own.pk)], ["", "", ""]), name
        assert theirs.pk not in rests_on, name


def test_what_others_said_too_stays_served() -> None:
    """The fact stays, so what was served of it is nobody's trace."""
    person, other, reader = (factories.end_user(owner) for owner in [factories.tenant()] * 3)
    fact = factories.group_fact(factories.memory_group(person, other), person, content="The oven is broken")
    GroupEvidence.objects.create(
        tenant=other.tenant, fact=fact, end_user=other, actor_kind="key", trust="user", created_at=NOW, said_at=NOW
    )
    row = serve(reader, ("group_fact", fact))
    done = running.carry_out(case_id=erasure(person).pk, now=timezone.now())
    assert (done.state, kept(row)[0]) == ("completed", [str(fact.pk)])


@pytest.mark.parametrize(("kind", "make"), ROWS, ids=NAMES)
def test_what_is_theirs_whose_data_may_not_be_used_is_not_written_down(
    kind: str, make: Callable[[EndUser], Any]
) -> None:
    """An erasure restricts its person first: a context that is written afterwards would leave a trace."""
    owner = factories.tenant(context_log="texts")
    person, reader = factories.end_user(owner), factories.end_user(owner)
    theirs, own = make(person), factories.fact(reader, "Likes tea")
    EndUser.objects.filter(pk=person.pk).update(restricted_at=NOW)
    row = serve(reader, (kind, theirs), ("fact", own))
    assert kept(row) == ([str(own.pk)], "", "", "r", [])


def test_blocks_that_were_sent_with_it_to_others_go_as_a_whole() -> None:
    """Each kind was sent to a reader of its own."""
    owner = factories.tenant()
    person, told, untold = factories.end_user(owner), dict[str, SentBlock](), dict[str, SentBlock]()
    for name, (_kind, make) in zip(NAMES, ROWS, strict=True):
        reader = factories.end_user(owner)
        theirs, own = make(person), factories.fact(reader, "Likes tea")
        told[name], untold[name] = factories.sent_block(reader, [own, theirs]), factories.sent_block(reader, [own])
        assert (BLOCKS_OF_OTHERS.count(person), BLOCKS_OF_OTHERS.count(reader)) == (len(told), 0), name
    exported = sorted(one["block"] for one in BLOCKS_OF_OTHERS.export_rows(person))
    assert exported == sorted(str(block.pk) for block in told.values())
    done = running.carry_out(case_id=erasure(person).pk, now=timezone.now())
    assert (done.state, done.findings["hits"]) == ("completed", {})
    left = set(SentBlock.objects.all())
    assert {name for name, block in told.items() if block in left} == set()
    assert {name for name, block in untold.items() if block not in left} == set()


@pytest.mark.parametrize(("kind", "make"), MADE.items(), ids=MADE)
def test_blocks_go_with_any_memory_that_is_deleted_for_good(kind: str, make: Callable[[EndUser], Any]) -> None:
    reader = factories.end_user()
    theirs = make(reader)
    factories.sent_block(reader, [theirs])
    untold = factories.sent_block(reader)
    theirs.delete()
    assert list(SentBlock.objects.all()) == [untold]


@pytest.mark.parametrize(("kind", "make"), MADE.items(), ids=MADE)
def test_texts_go_with_any_memory_that_is_deleted_for_good(kind: str, make: Callable[[EndUser], Any]) -> None:
    reader = factories.end_user(factories.tenant(context_log="texts"))
    row = serve(reader, (kind, theirs := make(reader)))
    assert (row.query, row.rests_on) == ("Who?", [theirs.pk])
    theirs.delete()
    assert kept(row)[1:3] == ("", "")


def test_one_context_of_everything_serves_the_kinds_that_are_declared_and_no_other() -> None:
    """A kind that a context serves and SERVED has not fails here; one that nobody here makes fails, too."""
    person = factories.end_user(factories.tenant())
    for make in (make for kind, make in MADE.items() if kind != "group_fact"):
        make(person)
    speaker = factories.end_user(person.tenant)
    factories.group_fact(factories.memory_group(speaker, person), speaker, content="Opens at seven", about=speaker)
    request = ContextRequest(
        user_id=person.external_id,
        query="Where does Aunt Wilhelmina live?",
        max_tokens=8000,
        include=frozenset(parts.INCLUDABLE),
    )
    built = context.build(tenant=person.tenant, request=request, now=NOW)
    assert {item["kind"] for item in built.items} == set(SERVED) == set(MADE) == set(KINDS)
    assert log.flush() == 1
    row = LoggedContext.objects.get()
    shown = logged_page.served(row)
    assert {(one.memory.kind, one.outcome) for one in shown} == {(kind, "same") for kind in SERVED}
    assert all(one.text and one.memory.address for one in shown)


def test_blocks_that_were_sent_are_sealed_by_every_kind() -> None:
    """Without a line of its own a kind would be told again when it has changed."""
    tables = {kind.model._meta.db_table for kind in SERVED.values()}
    assert [table for table in tables if f"JOIN {table} m " not in sent_blocks.SEALS] == []


def test_a_kind_that_nobody_declared_is_not_logged_by_halves() -> None:
    reader = factories.end_user(factories.tenant())
    with pytest.raises(KeyError, match="poem"):
        serve(reader, ("poem", factories.fact(reader)))


def test_every_kind_is_a_store_of_the_registry_and_takes_the_texts_along() -> None:
    stores = {store.model for store in registry.STORES}
    assert {kind.model._meta.label for kind in SERVED.values()} <= stores
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgrelid::regclass::text FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid "
                       "WHERE proname = 'memories_forget_logged_texts'")  # fmt: skip
        armed = {table for (table,) in cursor.fetchall()}
    assert armed == {kind.model._meta.db_table for kind in SERVED.values()}


def test_the_owner_of_a_group_fact_is_waited_for() -> None:
    """Its people are not those of the context: the writer locks them as it does the owner of a fact."""
    tenant: Tenant = factories.tenant()
    person, reader = factories.end_user(tenant), factories.end_user(tenant)
    fact = a_group_fact(person)
    people = log.people_behind([("group_fact", fact.pk), ("fact", factories.fact(reader).pk)])
    assert people["group_fact", fact.pk].all == {person.pk, fact.evidence.get().end_user_id}
