"""The log of contexts: noted without a write, written in the background, and never about somebody who is gone."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, transaction

from memories.context import context, log
from memories.context.context import ContextRequest
from memories.context.log import ContextBuffer, LogWriter
from memories.curation.turns import redact_turn
from memories.models import ContextLog, EndUser, Episode, Fact, LoggedContext, Turn
from memories.retrieval import recalls
from tests import factories
from tests.database import PATIENCE, blocked, held, statements
from tests.factories import NOW

pytestmark = pytest.mark.django_db
AT = NOW + timedelta(hours=1)


@pytest.fixture(autouse=True)
def buffer(monkeypatch: pytest.MonkeyPatch) -> ContextBuffer:
    fresh = ContextBuffer()
    monkeypatch.setattr(log, "_buffer", fresh)
    return fresh


def person_of(what: ContextLog = ContextLog.TEXTS) -> EndUser:
    return factories.end_user(factories.tenant(context_log=what), external_id="lin")


def serve(person: EndUser, query: str = "Where does Lin live?", *, at: datetime = AT, **more: Any) -> context.Context:
    return context.build(
        tenant=person.tenant, request=ContextRequest(user_id=person.external_id, query=query, **more), now=at
    )


class TestWhatIsKept:
    def test_ids_and_scores_by_default(self) -> None:
        person = factories.end_user(factories.tenant())
        fact = factories.fact(person, "Lives in Leiden")
        session = factories.session(person, session_id="s1", agent_id="sales")
        built = serve(person, agent_id="sales", session_id="s1", max_tokens=500)
        assert log.flush() == 1
        row = LoggedContext.objects.get()
        assert [(item["kind"], item["id"], item["score"]) for item in row.items] == [
            (item["kind"], item["id"], item["score"]) for item in built.items
        ]
        assert str(fact.pk) in {item["id"] for item in row.items}
        assert (row.agent_id, row.session_id, row.asked) == ("sales", session.pk, True)
        assert (row.token_count, row.max_tokens, row.revision) == (built.token_count, 500, built.revision)
        assert (row.query, row.memory, row.rests_on, row.created_at) == ("", "", [], AT)

    def test_the_texts_too_without_secrets(self) -> None:
        person = person_of()
        fact = factories.fact(person, "Lives in Leiden")
        built = serve(person, "My key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD: where do I live?")
        log.flush()
        row = LoggedContext.objects.get()
        assert row.memory == built.memory
        assert "where do I live?" in row.query
        assert "sk-proj" not in row.query
        assert fact.pk in row.rests_on

    @pytest.mark.parametrize(
        ("include", "kind", "make", "text"),
        [
            ("files", "file", lambda person: factories.memory_file(person, content="Bakes rye."), "Bakes rye."),
            ("diary", "diary", lambda person: factories.diary_entry(person, "Asked about rye."), "Asked about rye."),
            ("graph", "triple", lambda p: factories.triple(p, "Max", "works_at", "Acme"), "Max works at Acme"),
        ],
    )
    def test_by_their_ids_and_with_their_texts_until_they_are_deleted_for_good(
        self, include: str, kind: str, make: Callable[[EndUser], Any], text: str
    ) -> None:
        person = person_of()
        told = make(person)
        serve(person, "Max?", include=frozenset({include}))
        log.flush()
        row = LoggedContext.objects.get()
        assert [(item["kind"], item["id"]) for item in row.items] == [(kind, str(told.pk))]
        assert (row.rests_on, text in row.memory) == ([told.pk], True)
        told.delete()
        row.refresh_from_db()
        assert (row.query, row.memory) == ("", "")

    def test_nothing_where_the_log_is_off_or_an_operator_looks(self, buffer: ContextBuffer) -> None:
        person = person_of(ContextLog.OFF)
        serve(person)
        other = person_of()
        context.build(tenant=other.tenant, request=ContextRequest(user_id="lin"), now=AT, noted=False)
        context.build(tenant=other.tenant, request=ContextRequest(user_id="nobody"), now=AT)
        assert not len(buffer)
        serve(other)
        assert len(buffer) == 1

    def test_noting_writes_nothing(self) -> None:
        person = person_of()
        factories.fact(person)
        made = statements(lambda: serve(person))
        assert made
        assert not [one for one in made if not one.lstrip().startswith(("SELECT", "WITH"))]


@pytest.mark.django_db(transaction=True)
class TestBuffer:
    def test_beyond_the_bound_the_oldest_are_dropped_and_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        small = ContextBuffer(most=2)
        monkeypatch.setattr(log, "_buffer", small)
        person = person_of()
        for minute in range(3):
            serve(person, at=AT + timedelta(minutes=minute))
        assert (len(small), small.dropped) == (2, 1)
        LogWriter().end()
        assert LoggedContext.objects.count() == 2

    def test_what_an_outage_left_comes_first(self, buffer: ContextBuffer, monkeypatch: pytest.MonkeyPatch) -> None:
        person = person_of()
        serve(person)

        def fails(_batch: Any) -> Any:
            raise OperationalError

        with monkeypatch.context() as outage:
            outage.setattr(log, "_write", fails)
            LogWriter().once()
        serve(person, at=AT + timedelta(minutes=1))
        assert [one.at for one in buffer.take()] == [AT, AT + timedelta(minutes=1)]


class TestWhoIsGone:
    @pytest.mark.parametrize(
        "change",
        [{"generation": 2}, {"restricted_at": NOW}, None],
        ids=["erased, merged or redacted", "restricted", "as before"],
    )
    def test_only_who_is_as_before_is_written_about(self, change: dict[str, Any] | None) -> None:
        person = person_of()
        serve(person)
        if change:
            EndUser.objects.filter(pk=person.pk).update(**change)
        assert log.flush() == (0 if change else 1)

    def test_a_person_who_is_gone(self, buffer: ContextBuffer) -> None:
        person = person_of()
        serve(person)
        person.delete()
        assert (log.flush(), len(buffer)) == (0, 0)

    def test_a_public_fact_of_somebody_restricted_is_not_named(self) -> None:
        person = person_of()
        other = factories.end_user(person.tenant)
        told = factories.fact(other, "Lin's office lies in Leiden", scope="public")
        serve(person)
        serve(person)
        log.flush()
        assert [row.rests_on for row in LoggedContext.objects.all()] == [[told.pk], [told.pk]]
        LoggedContext.objects.all().delete()
        serve(person)
        EndUser.objects.filter(pk=other.pk).update(restricted_at=NOW)
        assert log.flush() == 1
        row = LoggedContext.objects.get()
        assert (row.items, row.rests_on, row.memory) == ([], [], "")


class TestWhatIsDeleted:
    def test_texts_go_with_what_they_repeat(self) -> None:
        person = person_of()
        session = factories.session(person, (("user", "I live in Leiden"),))
        facts = [factories.fact(person, text) for text in ("Lives in Leiden", "Bakes bread in Leiden")]
        episode = factories.episode(session, "Talked of Leiden")
        for gone in (facts[0], episode, Turn.objects.get()):
            row = factories.logged_context(person, [gone], query="Where?", memory="<memory>…</memory>")
            other = factories.logged_context(person, [facts[1]], query="What?", memory="<memory>…</memory>")
            gone.delete()
            row.refresh_from_db()
            other.refresh_from_db()
            assert (row.query, row.memory, len(row.items)) == ("", "", 1)
            assert (other.query, other.memory) == ("What?", "<memory>…</memory>")

    def test_what_was_deleted_before_the_log_is_written(self) -> None:
        person = person_of()
        factories.fact(person, "Lives in Leiden")
        serve(person)
        Fact.objects.all().delete()
        log.flush()
        row = LoggedContext.objects.get()
        assert (row.query, row.memory, len(row.items)) == ("", "", 1)

    def test_a_redaction_empties_all_texts_of_the_person(self) -> None:
        person = person_of()
        factories.session(person, (("user", "I live in Leiden"),))
        row = factories.logged_context(person, query="I live in Leiden, and where is that?", memory="<memory>")
        serve(person)
        redact_turn(turn_id=Turn.objects.get().pk, tenant=None, actor=factories.COMMAND, now=NOW)
        row.refresh_from_db()
        assert (row.query, row.memory) == ("", "")
        assert log.flush() == 0


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_whoever_holds_the_person_is_not_waited_for(self, buffer: ContextBuffer) -> None:
        person, other = person_of(), person_of()
        for one in (person, other):
            factories.fact(one)
            serve(one)
        with held(lambda: EndUser.objects.select_for_update().get(pk=person.pk)):
            assert log.flush() == 1
            assert len(buffer) == 1
        assert log.flush() == 1
        assert set(LoggedContext.objects.values_list("end_user", flat=True)) == {person.pk, other.pk}

    def test_an_erasure_begins_before_or_finds_the_rows(self) -> None:
        person = person_of()
        factories.fact(person)
        serve(person)

        def erase() -> tuple[int, int]:
            with transaction.atomic():
                EndUser.objects.select_for_update().get(pk=person.pk)
                found = LoggedContext.objects.filter(end_user=person.pk).delete()[0]
                return found, EndUser.objects.filter(pk=person.pk).update(restricted_at=NOW, generation=2)

        with held(log.flush) as written:
            assert written == 1
            waiting = blocked(erase)
        assert waiting.result(PATIENCE) == (1, 1)
        # What this person was served before, and is written after.
        log.note(noted(person))
        assert (log.flush(), LoggedContext.objects.count()) == (0, 0)


def noted(person: EndUser) -> log.NotedContext:
    return log.NotedContext(person, "", "", None, "", "", [], 0, 0, 100, None, "", 1, AT)


def test_a_query_still_reinforces_what_it_recalls(monkeypatch: pytest.MonkeyPatch) -> None:
    person = person_of(ContextLog.OFF)
    factories.fact(person, "Lives in Leiden")
    monkeypatch.setattr(recalls, "_buffer", recalls.Buffer())
    serve(person)
    assert recalls.flush(now=AT) == 1
    assert Episode.objects.count() == 0
