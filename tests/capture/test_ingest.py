"""Capture: every accepted turn once, in order, without gaps, and its session armed in the same transaction."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import tiktoken
from django.db import connection
from django.db.models.functions import Now
from psycopg._queries import MAX_CACHED_STATEMENT_LENGTH, MAX_CACHED_STATEMENT_PARAMS

from memories.capture import ingest
from memories.capture.ingest import Conversation, PostedMessage, Receipt
from memories.exceptions import ExternalIdReused, PersonRestricted
from memories.models import EndUser, Session, SessionQueue, Tenant, Turn
from memories.queue import queue_rows, session_queue
from tests import factories
from tests.database import PATIENCE, at_once, blocked, held, impatient, statements
from tests.factories import NOW

pytestmark = pytest.mark.django_db
THREADS = 8


@pytest.fixture(autouse=True)
def _with_a_model(settings: Any) -> None:
    settings.MEMORYHUB_LLM = "scripted"


def say(text: str = "Hello", role: str = "user", **over: Any) -> PostedMessage:
    return PostedMessage(role=role, content=text, **over)


def post(
    tenant: Tenant, *messages: PostedMessage, user: str = "u1", talk: str = "s1", agent: str = "", **over: Any
) -> Receipt:
    return ingest.store_turns(tenant=tenant, user_id=user, session_id=talk, agent_id=agent, messages=messages, **over)


def numbers(session: Session | None) -> list[int]:
    return list(Turn.objects.filter(session=session).order_by("number").values_list("number", flat=True))


def stored_at_all() -> list[int]:
    """How many people, sessions, queue rows and turns there are."""
    return [model._default_manager.count() for model in (EndUser, Session, SessionQueue, Turn)]


def wait_of(queue: SessionQueue) -> float:
    """Seconds from the arrival of the newest turn to the due time."""
    assert queue.due_at
    return (queue.due_at - queue.session.last_turn_at).total_seconds()


class TestWhatIsStored:
    def test_first_sight_makes_person_session_and_queue_row(self, tenant: Tenant) -> None:
        receipt = post(tenant, say("Hello"), say("Hi there", "assistant"), agent="support")
        talk = receipt.session
        assert talk
        assert stored_at_all() == [1, 1, 1, 2]
        assert (talk.external_id, talk.agent_id, talk.tenant) == ("s1", "support", tenant)
        assert (talk.end_user.external_id, talk.end_user.tenant) == ("u1", tenant)
        assert (receipt.accepted, receipt.duplicates) == (2, 0)

    def test_a_turn_is_kept_as_it_was_posted(self, tenant: Tenant) -> None:
        parts = [{"type": "text", "text": "Look"}, {"type": "image", "url": "x"}, {"type": "text", "text": "here 1.0"}]
        message = PostedMessage(
            role="assistant",
            content="Look\n\nhere 1.0",
            parts=parts,
            external_id="m1",
            timestamp=datetime(1970, 1, 1, tzinfo=UTC),
            tool_calls=[{"id": "c1", "score": 0.1}],
            tool_call_id="c0",
            name="planner",
            metadata={"trace": {"深": [1, None, True]}},
        )
        receipt = post(tenant, message)
        turn = Turn.objects.get()
        for name in set(vars(message)) - {"author", "is_declared", "cut", "is_part", "answer_key", "attachments"}:
            assert getattr(turn, name) == getattr(message, name), name
        assert (turn.tenant, turn.end_user.external_id, turn.number) == (tenant, "u1", 1)
        assert receipt.turns == [ingest.StoredTurn(turn.pk, 1, "m1", turn.token_count, False)]

    @pytest.mark.parametrize(
        "text",
        ["Hello world", "我住在杭州，喜欢喝茶。", "", "<|endoftext|> <|im_start|>", "🏴󠁧󠁢󠁥󠁮󠁧󠁿 e\u0301\u202e", "a\n\n\tb  "],
    )
    def test_text_of_any_kind_is_kept_and_counted(self, tenant: Tenant, text: str) -> None:
        post(tenant, say(text))
        turn = Turn.objects.get()
        assert turn.content == text
        assert turn.token_count == len(tiktoken.get_encoding("o200k_base").encode(text, disallowed_special=()))

    def test_the_session_counts_its_turns_and_tokens(self, tenant: Tenant) -> None:
        post(tenant, say("One two three"))
        receipt = post(tenant, say("Four", "assistant"), say("五", "tool"))
        talk = Session.objects.get()
        assert receipt.session == talk
        assert talk.turn_count == 3
        assert talk.token_count == sum(Turn.objects.values_list("token_count", flat=True)) > 0
        assert numbers(talk) == [1, 2, 3]
        assert talk.last_turn_at == Turn.objects.get(number=3).created_at > Turn.objects.get(number=1).created_at

    def test_the_clients_clock_does_not_decide_the_order(self, tenant: Tenant) -> None:
        moments = [datetime(2099, 1, 1, tzinfo=UTC), None, datetime(1970, 1, 1, tzinfo=UTC)]
        post(tenant, *(say(str(place), timestamp=moment) for place, moment in enumerate(moments)))
        assert list(Turn.objects.order_by("number").values_list("content", flat=True)) == ["0", "1", "2"]

    def test_sessions_are_kept_apart_by_tenant_person_agent_and_id(self, tenant: Tenant) -> None:
        other = factories.tenant()
        for owner, user, agent, talk in (
            (tenant, "u1", "", "s1"),
            (other, "u1", "", "s1"),
            (tenant, "u2", "", "s1"),
            (tenant, "u1", "support", "s1"),
            (tenant, "u1", "", "s2"),
        ):
            receipt = post(owner, say(), user=user, agent=agent, talk=talk)
            assert [turn.number for turn in receipt.turns] == [1]
        assert stored_at_all() == [3, 5, 5, 5]

    def test_last_seen_is_kept_to_the_minute(self, tenant: Tenant) -> None:
        post(tenant, say())
        person = EndUser.objects.get()
        post(tenant, say())
        assert EndUser.objects.get().last_seen_at == person.last_seen_at
        EndUser.objects.update(last_seen_at=Now() - timedelta(minutes=1))
        post(tenant, say())
        assert EndUser.objects.get().last_seen_at > person.last_seen_at


class TestDuplicates:
    def test_a_known_external_id_is_not_stored_again(self, tenant: Tenant) -> None:
        first = post(tenant, say("One", external_id="m1"))
        again = post(tenant, say("One", external_id="m1"), say("Two", external_id="m2"), say("One"))
        assert [turn.duplicate for turn in again.turns] == [True, False, False]
        assert [turn.number for turn in again.turns] == [1, 2, 3]
        assert again.turns[0].id == first.turns[0].id
        assert (again.accepted, again.duplicates) == (2, 1)
        assert numbers(again.session) == [1, 2, 3]

    def test_twice_within_one_request(self, tenant: Tenant) -> None:
        receipt = post(tenant, say("One", external_id="m1"), say("One", external_id="m1"), say("Two"))
        assert [(turn.number, turn.duplicate) for turn in receipt.turns] == [(1, False), (1, True), (2, False)]
        assert receipt.turns[0].id == receipt.turns[1].id
        assert numbers(receipt.session) == [1, 2]

    @pytest.mark.parametrize(
        "other",
        [
            say("Else", external_id="m1"),
            say("One", "assistant", external_id="m1"),
            say("One", external_id="m1", tool_call_id="c1"),
            say("One", external_id="m1", parts=[{"type": "text", "text": "One"}]),
        ],
    )
    def test_other_content_is_refused_with_all_that_came_with_it(self, tenant: Tenant, other: PostedMessage) -> None:
        post(tenant, say("One", external_id="m1"))
        before = SessionQueue.objects.values().get()
        for messages in ([say("New"), other], [other, say("New")]):
            with pytest.raises(ExternalIdReused):
                post(tenant, *messages, flush=True)
        assert stored_at_all() == [1, 1, 1, 1]
        assert Session.objects.get().turn_count == 1
        assert SessionQueue.objects.values().get() == before

    def test_other_content_within_one_request_stores_not_even_the_person(self, tenant: Tenant) -> None:
        with pytest.raises(ExternalIdReused):
            post(tenant, say("One", external_id="m1"), say("Two", external_id="m1"))
        assert stored_at_all() == [0, 0, 0, 0]

    def test_list_content_is_recognised(self, tenant: Tenant) -> None:
        parts = [{"type": "text", "text": "你好"}, {"type": "data", "value": [1, 2.5, None, {"b": 1, "a": True}]}]
        first = post(tenant, say("你好", parts=parts, external_id="m1"))
        again = post(tenant, say("你好", parts=parts, external_id="m1"))
        assert (first.accepted, again.accepted, again.duplicates) == (1, 0, 1)

    def test_the_same_external_id_belongs_to_each_session(self, tenant: Tenant) -> None:
        post(tenant, say("One", external_id="m1"))
        assert post(tenant, say("Two", external_id="m1"), talk="s2").accepted == 1

    def test_an_empty_external_id_is_none(self, tenant: Tenant) -> None:
        receipt = post(tenant, say("One", external_id=""), say("Two", external_id=""))
        assert [turn.external_id for turn in receipt.turns] == [None, None]
        assert receipt.accepted == 2

    def test_nothing_new_arms_nothing(self, tenant: Tenant) -> None:
        post(tenant, say("One", external_id="m1"))
        before = SessionQueue.objects.values().get()
        post(tenant, say("One", external_id="m1"))
        assert SessionQueue.objects.values().get() == before


class TestArming:
    def test_due_after_the_debounce_once_there_is_a_reply(self, tenant: Tenant) -> None:
        asked = post(tenant, say())
        queue = SessionQueue.objects.select_related("session").get()
        assert wait_of(queue) == 300
        answered = post(tenant, say("Hi", "assistant"))
        queue = SessionQueue.objects.select_related("session").get()
        assert wait_of(queue) == 30
        assert (queue.pending_rounds, queue.pending_user, queue.pending_reply, queue.round_open) == (
            1,
            True,
            True,
            False,
        )
        assert queue.first_pending_at
        for receipt in (asked, answered):
            assert receipt.extraction.status == "pending"
            assert receipt.extraction.max_due_at == queue.first_pending_at + timedelta(seconds=300)
        assert answered.extraction.due_at == queue.due_at

    def test_flush_makes_it_due_now_also_with_nothing_new(self, tenant: Tenant) -> None:
        post(tenant, say(external_id="m1"))
        post(tenant, say(external_id="m1"), flush=True)
        assert wait_of(SessionQueue.objects.select_related("session").get()) < 5
        receipt = post(tenant, say("More"), flush=True, talk="s2")
        assert receipt.session
        assert receipt.extraction.due_at == receipt.session.last_turn_at

    def test_a_stretch_without_a_user_turn_is_passed_over(self, tenant: Tenant) -> None:
        roles = ["system", "assistant", *["tool"] * 30]
        receipt = post(tenant, *(say("x", role) for role in roles), flush=True)
        queue = SessionQueue.objects.get()
        assert receipt.extraction.status == "idle"
        assert (queue.due_at, queue.extracted_number, queue.first_pending_at) == (None, len(roles), None)

    def test_what_was_passed_over_does_not_hurry_the_next_turn(self, tenant: Tenant) -> None:
        post(tenant, say("Welcome", "assistant"))
        Turn.objects.update(created_at=Now() - timedelta(days=1))
        SessionQueue.objects.update(first_pending_at=None)
        post(tenant, say())
        queue = SessionQueue.objects.select_related("session").get()
        assert wait_of(queue) == 300
        assert (queue.extracted_number, queue.pending_reply) == (1, False)

    def test_without_a_model_nothing_is_armed(self, tenant: Tenant, settings: Any) -> None:
        settings.MEMORYHUB_LLM = "off"
        receipt = post(tenant, say(), flush=True)
        assert receipt.extraction.status == "off"
        assert receipt.accepted == 1
        assert SessionQueue.objects.get().due_at is None

    @pytest.mark.django_db(transaction=True)
    def test_a_crash_while_arming_stores_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tenant = factories.tenant()
        real = session_queue.arm

        def crash(*args: Any, **kwargs: Any) -> None:
            real(*args, **kwargs)
            raise RuntimeError("power cut")

        monkeypatch.setattr(session_queue, "arm", crash)
        with pytest.raises(RuntimeError, match="power cut"):
            post(tenant, say())
        assert stored_at_all() == [0, 0, 0, 0]
        monkeypatch.setattr(session_queue, "arm", real)
        post(tenant, say())
        assert stored_at_all() == [1, 1, 1, 1]
        assert SessionQueue.objects.get().due_at

    @pytest.mark.django_db(transaction=True)
    def test_a_crash_before_arming_stores_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tenant = factories.tenant()
        post(tenant, say("One"))

        def crash(*args: Any, **kwargs: Any) -> None:
            raise RuntimeError("power cut")

        with monkeypatch.context() as patched:
            patched.setattr(session_queue, "arm", crash)
            with pytest.raises(RuntimeError, match="power cut"):
                post(tenant, say("Two"))
        assert (Session.objects.get().turn_count, Turn.objects.count()) == (1, 1)
        receipt = post(tenant, say("Two"))
        assert numbers(receipt.session) == [1, 2]


class TestSwitches:
    def test_capture_off_for_the_tenant(self) -> None:
        receipt = post(factories.tenant(capture=False), say(), flush=True)
        assert (receipt.session, receipt.turns, receipt.accepted) == (None, [], 0)
        assert stored_at_all() == [0, 0, 0, 0]

    def test_capture_off_for_the_person(self, tenant: Tenant) -> None:
        post(tenant, say())
        EndUser.objects.update(capture=False)
        for talk in ("s1", "s2"):
            receipt = post(tenant, say(), talk=talk)
            assert (receipt.session, receipt.turns, receipt.accepted) == (None, [], 0)
        assert stored_at_all() == [1, 1, 1, 1]
        assert post(tenant, say(), user="u2").accepted == 1

    def test_a_restricted_person_is_refused(self, tenant: Tenant) -> None:
        post(tenant, say())
        EndUser.objects.update(restricted_at=NOW)
        for talk in ("s1", "s2"):
            with pytest.raises(PersonRestricted):
                post(tenant, say(), talk=talk)
        assert stored_at_all() == [1, 1, 1, 1]
        assert post(tenant, say(), user="u2").accepted == 1


class TestCost:
    """Statements besides BEGIN and COMMIT; another one here is felt at every message."""

    def test_a_known_session_takes_two_statements(self, tenant: Tenant) -> None:
        post(tenant, say())
        taken = statements(lambda: post(tenant, say()))
        assert [statement.split()[0] for statement in taken] == ["SELECT", "WITH"]

    def test_psycopg_remembers_how_its_statement_reads(self, tenant: Tenant) -> None:
        """One with more parameters it takes apart again for each post."""
        asked: list[tuple[str, int]] = []

        def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
            asked.append((sql, len(parameters or ())))
            return execute(sql, parameters, many, context)

        post(tenant, say())
        with connection.execute_wrapper(note):
            post(tenant, say(), say("Yes.", "assistant"))
            post(tenant, say("I live in Leiden. " * 4_000))
        assert [sql for sql, _ in asked if "INSERT" in sql and "armed AS" in sql]
        assert max(count for _, count in asked) <= MAX_CACHED_STATEMENT_PARAMS
        assert max(len(sql) for sql, _ in asked) <= MAX_CACHED_STATEMENT_LENGTH

    @pytest.mark.parametrize("count", [2, 50])
    def test_several_turns_take_one_more(self, tenant: Tenant, count: int) -> None:
        post(tenant, say())
        taken = statements(lambda: post(tenant, *[say()] * count))
        assert [statement.split()[0] for statement in taken] == ["SELECT", "INSERT", "WITH"]

    def test_external_ids_take_one_more(self, tenant: Tenant) -> None:
        post(tenant, say())
        messages = [say(external_id=f"m{place}") for place in range(50)]
        assert len(statements(lambda: post(tenant, *messages))) == 4
        assert len(statements(lambda: post(tenant, *messages))) == 2

    def test_first_sight_takes_ten(self, tenant: Tenant) -> None:
        # One of them looks for a tombstone.
        assert len(statements(lambda: post(tenant, say()))) == 10

    def test_five_hundred_turns_are_one_insert(self, tenant: Tenant) -> None:
        taken = statements(lambda: post(tenant, *[say()] * 500))
        assert sum(statement.startswith("INSERT INTO memories_turn") for statement in taken) == 1


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_many_writers_leave_no_gap_and_keep_their_own_order(self) -> None:
        tenant = factories.tenant()

        def write(writer: int) -> list[int]:
            posts = [post(tenant, say(f"{writer}.{n}"), say(f"{writer}.{n}+")) for n in range(5)]
            return [turn.number for receipt in posts for turn in receipt.turns]

        answered = at_once(THREADS, write)
        assert stored_at_all() == [1, 1, 1, THREADS * 10]
        assert numbers(Session.objects.get()) == list(range(1, THREADS * 10 + 1))
        for writer, own in enumerate(answered):
            said = Turn.objects.filter(content__startswith=f"{writer}.").order_by("number")
            assert [turn.number for turn in said] == own
            assert [turn.content for turn in said] == [f"{writer}.{n}{end}" for n in range(5) for end in ("", "+")]
        queue = SessionQueue.objects.get()
        assert queue.pending_tokens == Session.objects.get().token_count

    def test_first_sight_by_many_makes_one_of_each(self) -> None:
        tenant = factories.tenant()
        answered = at_once(THREADS, lambda writer: post(tenant, say(str(writer))).session)
        assert len({talk.pk for talk in answered if isinstance(talk, Session)}) == 1
        assert stored_at_all() == [1, 1, 1, THREADS]
        assert numbers(Session.objects.get()) == list(range(1, THREADS + 1))

    def test_the_same_message_by_many_is_stored_once(self) -> None:
        tenant = factories.tenant()
        answered = at_once(THREADS, lambda _: post(tenant, say("One", external_id="m1")))
        receipts = [receipt for receipt in answered if isinstance(receipt, Receipt)]
        assert len(receipts) == THREADS
        assert sum(receipt.accepted for receipt in receipts) == 1
        assert len({receipt.turns[0].id for receipt in receipts}) == 1
        assert stored_at_all() == [1, 1, 1, 1]

    def test_one_id_with_many_contents_keeps_the_first(self) -> None:
        tenant = factories.tenant()
        answered = at_once(THREADS, lambda writer: post(tenant, say(f"I am {writer}", external_id="m1")))
        assert sum(isinstance(outcome, Receipt) for outcome in answered) == 1
        assert sum(isinstance(outcome, ExternalIdReused) for outcome in answered) == THREADS - 1
        assert stored_at_all() == [1, 1, 1, 1]

    def test_rows_that_refer_to_the_session_hold_nothing_up(self) -> None:
        tenant = factories.tenant()
        talk = post(tenant, say()).session
        assert talk

        def begin_run() -> None:
            factories.run(talk)
            with connection.cursor() as cursor:
                # Not only at the commit: now the new row's reference locks the session.
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

        with held(begin_run), impatient():
            assert post(tenant, say()).accepted == 1

    def test_sessions_of_one_person_do_not_wait_for_each_other(self) -> None:
        tenant = factories.tenant()
        post(tenant, say(), talk="s1")
        post(tenant, say(), talk="s2")
        with held(lambda: post(tenant, say("Slow"), talk="s1")), impatient():
            assert post(tenant, say("Fast"), talk="s2").accepted == 1
            assert not Turn.objects.filter(content="Slow").exists()
        assert Turn.objects.filter(content="Slow").exists()

    def test_turns_come_in_while_a_batch_is_committed(self) -> None:
        tenant = factories.tenant()
        receipt = post(tenant, say(), flush=True)
        assert receipt.session
        claim = session_queue.claim(receipt.session.pk)
        assert claim
        post(tenant, say(), talk="s2")
        with held(lambda: queue_rows.fence(claim)), impatient():
            # The person's row is held too: another session of the same person still takes turns.
            assert post(tenant, say(), talk="s2").accepted == 1

    def test_two_bulks_that_name_the_same_sessions_in_opposite_order(self) -> None:
        tenant = factories.tenant()
        talks = [Conversation("小明", name, "", [say(name)]) for name in ("s1", "s2", "s3", "s4")]
        ingest.store_conversations(tenant=tenant, conversations=talks)

        def bulk(index: int) -> list[Receipt]:
            return ingest.store_conversations(tenant=tenant, conversations=talks[:: 1 if index % 2 else -1])

        outcomes = at_once(THREADS, bulk)
        assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
        assert list(Session.objects.values_list("turn_count", flat=True)) == [THREADS + 1] * 4

    def test_a_bulk_locks_in_one_order_whatever_the_given_one(self) -> None:
        tenant = factories.tenant()
        for name in ("s1", "s2"):
            post(tenant, say(), talk=name)
        backwards = [Conversation("u1", name, "", [say(name)]) for name in ("s2", "s1")]
        with held(lambda: post(tenant, say("Slow"), talk="s1")), impatient():
            waiting = blocked(lambda: ingest.store_conversations(tenant=tenant, conversations=backwards))
            # It waits for the first in order with the second still free.
            assert post(tenant, say("Fast"), talk="s2").accepted == 1
        assert [receipt.accepted for receipt in waiting.result(PATIENCE)] == [1, 1]

    def test_a_bulk_touches_its_people_only_when_it_has_all_of_its_sessions(self) -> None:
        tenant = factories.tenant()
        for name in ("s1", "s2"):
            post(tenant, say(), talk=name)
        person = EndUser.objects.get()
        EndUser.objects.update(last_seen_at=NOW)
        both = [Conversation(person.external_id, name, "", [say(name)]) for name in ("s1", "s2")]

        def lock_second() -> None:
            SessionQueue.objects.select_for_update().get(session__external_id="s2")

        with held(lock_second), impatient():
            waiting = blocked(lambda: ingest.store_conversations(tenant=tenant, conversations=both))
            # Whoever has the second session comes to the person next.
            EndUser.objects.filter(pk=person.pk).update(language="nl")
        assert len(waiting.result(PATIENCE)) == 2
        person.refresh_from_db()
        assert person.last_seen_at > NOW
