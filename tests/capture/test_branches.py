"""A client goes back to an earlier message: the turns that it left stay stored and are used for nothing, until it goes
on with them."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from memories import conf
from memories.capture import branches, ingest, resent
from memories.capture.ingest import Conversation, Lacking, PostedMessage, Receipt
from memories.capture.session_rows import locked_queue
from memories.context import context
from memories.context.context import ContextRequest
from memories.context.parts import DEFAULT_INCLUDE
from memories.context.window import open_window
from memories.curation.turns import redact_turn
from memories.embedding import turn_vectors
from memories.embedding.vectors import embed_some
from memories.episodes import compaction
from memories.extraction import consolidation
from memories.invariants import check
from memories.models import EndUser, Episode, Fact, Session, SessionQueue, Turn, TurnVector, WorkingMemory
from memories.privacy.expiry.turns import _delete_up_to
from memories.retrieval import tenant_turns
from memories.retrieval.prepared_query import prepare
from memories.retrieval.tenant_turns import TurnFilters
from memories.retrieval.turn_index import open_index
from tests import factories
from tests.database import Gate, at_once
from tests.factories import NOW
from tests.model import Model, candidate

pytestmark = pytest.mark.django_db
LEIDEN, DELFT = "I live in Leiden", "I live in Delft"


def messages_of(*texts: str) -> list[PostedMessage]:
    """In turn the user's and the assistant's."""
    return [PostedMessage(("user", "assistant")[at % 2], text) for at, text in enumerate(texts)]


def send(person: EndUser, *texts: str, session_id: str = "s1") -> Receipt:
    """A client sends its whole conversation."""
    messages = messages_of(*texts)
    return _store(person, messages, lambda session: resent.lacking(session, messages), session_id)


def answer(person: EndUser, text: str, *, after: int, asked: int, session_id: str = "s1") -> Receipt:
    messages = [PostedMessage("assistant", text)]
    return _store(
        person,
        messages,
        lambda session: resent.lacking_answer(session, messages, after=after, asked=asked),
        session_id,
    )


def _store(person: EndUser, messages: list[PostedMessage], lacking: Any, session_id: str) -> Receipt:
    conversation = Conversation(person.external_id, session_id, "", messages)
    return ingest.store_lacking(tenant=person.tenant, conversation=conversation, lacking=lacking)


def current() -> list[str]:
    return list(Turn.objects.current().order_by("session", "number").values_list("content", flat=True))


def left() -> list[str]:
    return list(Turn.objects.filter(left_at__isnull=False).order_by("number").values_list("content", flat=True))


def window_of(person: EndUser) -> list[str]:
    window = open_window(person, agent_id="", session_id="s1", rules=conf.rules(person.tenant))
    return [message["content"] for message in window.messages("")]


class TestWhatIsLeft:
    @pytest.mark.parametrize(
        ("again", "conversation", "gone"),
        [
            # Another answer, a changed message, the same once more.
            (("a", "B", "c"), ["a", "B", "c"], ["D"]),
            (("a", "B", "x", "Y"), ["a", "B", "x", "Y"], ["c", "D"]),
            (("a", "B", "c", "D"), ["a", "B", "c", "D"], []),
            (("a", "B", "c", "D", "e"), ["a", "B", "c", "D", "e"], []),
            # A client that sends its newest message alone left nothing.
            (("e",), ["a", "B", "c", "D", "e"], []),
            # Nor did a question beside the conversation, until the next request shows which of both goes on.
            (("a", "B", "x"), ["a", "B", "c", "D"], ["x"]),
            (("a", "B"), ["a", "B", "c", "D"], []),
        ],
        ids=str,
    )
    def test_what_the_client_does_not_send_again(
        self, person: EndUser, again: tuple[str, ...], conversation: list[str], gone: list[str]
    ) -> None:
        send(person, "a", "B", "c", "D")
        send(person, *again)
        assert (current(), left()) == (conversation, gone)
        assert check() == []

    def test_each_message_is_a_turn_once_whichever_branch_the_client_goes_on_with(self, person: EndUser) -> None:
        branches = (("a", "B", "c", "D", "e", "F"), ("a", "B", "c", "X", "y"), ("a", "B", "z", "Z"))
        for branch in (*branches, *branches, branches[1], branches[0]):
            send(person, *branch)
            assert current() == list(branch)
            assert check() == []
        assert sorted(Turn.objects.values_list("content", flat=True)) == sorted("aBcDeFXyzZ")

    def test_the_next_request_shows_which_branch_goes_on(self, person: EndUser) -> None:
        send(person, "a", "B", "c", "D")
        send(person, "a", "B", "x")
        answer(person, "Y", after=5, asked=3)
        assert (current(), left()) == (["a", "B", "c", "D"], ["x", "Y"])
        send(person, "a", "B", "c", "D", "e")
        assert (current(), left()) == (["a", "B", "c", "D", "e"], ["x", "Y"])
        send(person, "a", "B", "x", "Y", "z")
        assert (current(), left()) == (["a", "B", "x", "Y", "z"], ["c", "D", "e"])
        assert check() == []

    def test_a_branch_goes_on_where_it_was_left(self, person: EndUser) -> None:
        send(person, "a", "B", "c", "D")
        send(person, "a", "B", "x", "Y")
        send(person, "a", "B", "c", "D", "e")
        assert (current(), left()) == (["a", "B", "c", "D", "e"], ["x", "Y"])

    def test_the_same_words_on_two_branches_are_two_turns(self, person: EndUser) -> None:
        first, second = ("a", "B", "thanks", "C"), ("a", "X", "thanks", "Y")
        send(person, "a", "B")
        send(person, *second)
        send(person, *first)
        assert (current(), left()) == (list(first), ["X", "thanks", "Y"])
        for branch in (second, first, second, (*first, "d")):
            send(person, *branch)
            assert current() == list(branch)
            assert check() == []
        assert sorted(Turn.objects.values_list("content", flat=True)) == sorted([*first, "X", "thanks", "Y", "d"])

    def test_the_newest_message_alone_may_be_the_first_again(self, person: EndUser) -> None:
        send(person, "Hi", "Hello", "c", "D")
        send(person, "Hi", "Hello", "x", "Y")
        send(person, "Hi")
        assert (current(), left()) == (["Hi", "Hello", "x", "Y", "Hi"], ["c", "D"])

    def test_what_is_redacted_on_a_left_branch_stays_so_when_it_comes_back(self, person: EndUser) -> None:
        send(person, "a", "B", LEIDEN)
        send(person, "a", "B", "x", "Y")
        redact_turn(turn_id=Turn.objects.get(number=3).pk, tenant=None, actor=factories.COMMAND, now=NOW)
        assert check() == []
        send(person, "a", "B", LEIDEN)
        assert (current(), left()) == (["a", "B", ""], ["x", "Y"])
        assert check() == []


def follow(person: EndUser, response_id: str, *texts: str, reply: str = "") -> None:
    """A client whose endpoint keeps the conversation sends what is new and names the answer that it follows."""
    messages = [PostedMessage("user", text) for text in texts]
    _store(person, messages, lambda session: resent.lacking(session, messages, follows=response_id), "s1")
    if reply:
        said = [PostedMessage("assistant", reply, metadata={resent.ANSWER_ID: f"id of {reply}"})]
        after = Turn.objects.current().latest("number").number
        _store(person, said, lambda session: resent.lacking_answer(session, said, after=after, asked=1), "s1")


class TestAnAnswerThatIsFollowedByItsId:
    def test_what_was_said_after_it_is_left(self, person: EndUser) -> None:
        follow(person, "", "a", reply="B")
        follow(person, "id of B", "c", reply="D")
        assert (current(), left()) == (["a", "B", "c", "D"], [])
        follow(person, "id of B", "x", reply="Y")
        assert (current(), left()) == (["a", "B", "x", "Y"], ["c", "D"])
        assert check() == []

    def test_what_follows_it_comes_back(self, person: EndUser) -> None:
        follow(person, "", "a", reply="B")
        follow(person, "id of B", "c", reply="D")
        follow(person, "id of B", "x", reply="Y")
        follow(person, "id of D", "e", reply="F")
        assert (current(), left()) == (["a", "B", "c", "D", "e", "F"], ["x", "Y"])
        follow(person, "id of B", "x")
        assert (current(), left()) == (["a", "B", "x"], ["c", "D", "Y", "e", "F"])
        follow(person, "id of Y", "z")
        assert (current(), left()) == (["a", "B", "x", "Y", "z"], ["c", "D", "e", "F"])
        assert check() == []

    def test_an_answer_that_the_session_does_not_have_leaves_nothing(self, person: EndUser) -> None:
        follow(person, "", "a", reply="B")
        follow(person, "id of somebody's", "c")
        assert (current(), left()) == (["a", "B", "c"], [])

    def test_one_whose_conversation_is_deleted_leaves_nothing(self, person: EndUser) -> None:
        follow(person, "", "a", reply="B")
        follow(person, "id of B", "c", reply="D")
        follow(person, "id of B", "x")
        with transaction.atomic():
            _delete_up_to(Session.objects.get(), 3)
        follow(person, "id of D", "e")
        assert (current(), left()) == (["x", "e"], ["D"])
        assert check() == []


class TestAnswers:
    def test_one_that_comes_late_belongs_to_the_branch_that_was_left(self, person: EndUser) -> None:
        send(person, "a", "B", "c")
        send(person, "a", "B", "x", "Y", "z")
        answer(person, "Z", after=6, asked=5)
        answer(person, "D", after=3, asked=3)
        assert (current(), left()) == (["a", "B", "x", "Y", "z", "Z"], ["c", "D"])
        assert check() == []
        assert window_of(person) == ["a", "B", "x", "Y", "z", "Z"]

    def test_of_two_to_one_question_the_first_stays_until_the_client_says(self, person: EndUser) -> None:
        send(person, "a", "B", "c")
        answer(person, "D", after=3, asked=3)
        answer(person, "E", after=3, asked=3)
        assert (current(), left()) == (["a", "B", "c", "D"], ["E"])
        send(person, "a", "B", "c", "E", "f")
        assert (current(), left()) == (["a", "B", "c", "E", "f"], ["D"])

    def test_a_client_that_sends_its_newest_message_alone_may_ask_two_things_at_once(self, person: EndUser) -> None:
        send(person, "a")
        send(person, "b")
        answer(person, "To a", after=1, asked=1)
        answer(person, "To b", after=2, asked=1)
        assert (current(), left()) == (["a", "b", "To a", "To b"], [])

    def test_an_answer_that_was_given_before_comes_back(self, person: EndUser) -> None:
        send(person, "a", "B")
        send(person, "a")
        assert left() == ["B"]
        answer(person, "B", after=1, asked=1)
        assert (current(), left(), Turn.objects.count()) == (["a", "B"], [], 2)

    def test_without_the_question_it_is_not_kept(self, person: EndUser) -> None:
        send(person, "a")
        Session.objects.all().delete()
        answer(person, "B", after=1, asked=1)
        assert not Turn.objects.exists()


class TestWhatDoesNotTellIt:
    @pytest.fixture(autouse=True)
    def _left(self, person: EndUser) -> None:
        send(person, "Hello", "Hi", LEIDEN, "Nice")
        while embed_some().moved:
            pass
        assert TurnVector.objects.count() == 4
        send(person, "Hello", "Hi", DELFT, "Fine")

    def test_the_window(self, person: EndUser) -> None:
        assert window_of(person) == ["Hello", "Hi", DELFT, "Fine"]
        send(person, "Hello", "Hi", LEIDEN)
        assert window_of(person) == ["Hello", "Hi", LEIDEN]

    @pytest.mark.parametrize("query", ["", "Where do I live?"])
    def test_contexts(self, person: EndUser, query: str) -> None:
        def told(**over: Any) -> context.Context:
            request = ContextRequest(person.external_id, "", "s2", query=query, max_tokens=500, **over)
            return context.build(tenant=person.tenant, request=request, now=timezone.now())

        for include in (DEFAULT_INCLUDE, DEFAULT_INCLUDE | {"unextracted"}):
            assert DELFT in told(include=include).memory
            assert LEIDEN not in told(include=include).memory
        before = told().revision
        send(person, "Hello", "Hi", LEIDEN)
        assert LEIDEN in told().memory
        assert DELFT not in told().memory
        assert told().revision != before

    def test_searches_by_words_and_by_meaning(self, person: EndUser) -> None:
        numbers = set(Turn.objects.filter(terms=None).values_list("number", flat=True))
        assert numbers == {3, 4}
        assert set(TurnVector.objects.values_list("number", flat=True)) == {1, 2}
        assert len(open_index(person, None)) == 4
        found = tenant_turns.search(person.tenant, prepare("Leiden", asked=NOW), TurnFilters(), limit=10)
        assert LEIDEN not in [hit.turn.content for hit in found.found]
        while embed_some().moved:
            pass
        assert set(TurnVector.objects.values_list("number", flat=True)) == {1, 2, 5, 6}
        # The positive control: what came back is found again, with its vector.
        send(person, "Hello", "Hi", LEIDEN, "Nice")
        while embed_some().moved:
            pass
        assert set(TurnVector.objects.values_list("number", flat=True)) == {1, 2, 3, 4}
        assert len(open_index(person, None)) == 4
        assert check() == []

    def test_vectors_that_are_being_made_of_it_are_not_written(self, person: EndUser) -> None:
        read = list(turn_vectors.with_text(Turn.objects.all()))
        assert [turn.number for turn in read] == [1, 2, 5, 6]
        send(person, "Hello", "Hi", "Something else", "Yes")
        with transaction.atomic():
            assert turn_vectors.lock_existing(read) == {turn.pk for turn in read[:2]}

    def test_extraction_reads_what_the_person_said_and_no_answer(self, person: EndUser, model: Model) -> None:
        SessionQueue.objects.update(due_at=NOW)
        model.say(candidate("Lives in Delft", evidence=[5]))
        run = consolidation.consolidate(session_id=Session.objects.get().pk, now=NOW)
        assert run
        assert (run.status, run.fed_turns) == ("committed", 5)
        assert LEIDEN in model.prompts[0]
        assert DELFT in model.prompts[0]
        assert "Nice" not in model.prompts[0]
        assert check() == []


class TestPendingWork:
    def test_what_the_person_said_waits_also_where_it_was_left(self, person: EndUser, model: Model) -> None:
        send(person, "Hello", "Hi")
        SessionQueue.objects.update(due_at=NOW)
        consolidation.consolidate(session_id=Session.objects.get().pk, now=NOW)
        send(person, "Hello", "Hi", LEIDEN, "Nice")
        queue = SessionQueue.objects.get()
        assert (queue.pending_user, queue.pending_reply, queue.due_at is None) == (True, True, False)
        send(person, "Hello", "Hi", DELFT, "Fine", "And?")
        SessionQueue.objects.update(due_at=NOW)
        consolidation.consolidate(session_id=Session.objects.get().pk, now=timezone.now())
        assert LEIDEN in model.prompts[-1]
        queue = SessionQueue.objects.get()
        assert (queue.pending_user, queue.pending_reply, queue.due_at) == (False, False, None)
        assert check() == []

    def test_what_was_read_before_it_was_left_comes_back_as_it_is(self, person: EndUser, model: Model) -> None:
        send(person, "Hello", "Hi", LEIDEN, "Nice")
        SessionQueue.objects.update(due_at=NOW)
        model.say(candidate("Lives in Leiden", evidence=[3]))
        consolidation.consolidate(session_id=Session.objects.get().pk, now=timezone.now())
        send(person, "Hello", "Hi", DELFT, "Fine")
        # What was made of it stays.
        assert Fact.objects.get().status == "active"
        send(person, "Hello", "Hi", LEIDEN, "Nice", "And now?")
        assert Turn.objects.count() == 7
        waiting = Turn.objects.filter(number__in=[5, 7])
        assert SessionQueue.objects.get().pending_tokens == sum(waiting.values_list("token_count", flat=True))
        assert check() == []

    def test_the_running_summary_is_made_anew_without_it(self, person: EndUser, model: Model) -> None:
        factories.set_numbers(person.tenant, window_rounds=2)
        said = [f"{name} {number}" for number in range(6) for name in ("Question", "Reply")]
        send(person, *said)
        WorkingMemory.objects.update(due_at=NOW)
        compaction.compact(session_id=Session.objects.get().pk, now=NOW)
        assert WorkingMemory.objects.get().left_number >= 6
        episodes, asked = Episode.objects.count(), len(model.prompts)
        send(person, *said[:3], "Another", "x")
        window = WorkingMemory.objects.get()
        assert (window.summary, window.left_number) == ("", 0)
        assert check() == []
        send(person, *said[:3], "Another", "x", "Y", "z", "Z")
        WorkingMemory.objects.update(due_at=NOW)
        compaction.compact(session_id=Session.objects.get().pk, now=NOW)
        [*_, shown] = model.prompts[asked:]
        assert "Another" in shown
        assert "Question 2" not in "".join(model.prompts[asked:])
        assert Episode.objects.count() >= episodes
        assert check() == []
        assert window_of(person)[-2:] == ["z", "Z"]

    def test_turns_that_were_left_at_the_end_wait_for_their_episode(self, person: EndUser, model: Model) -> None:
        send(person, "Where is Leiden?", "In Holland", "And Delft?", "Also", "Thank you so much", "Sure")
        Session.objects.update(ended_at=NOW)
        WorkingMemory.objects.update(due_at=NOW)
        compaction.compact(session_id=Session.objects.get().pk, now=NOW)
        assert Episode.objects.get().last_number == 6
        send(person, "Where is Leiden?", "In Holland", "And Delft?", "Also", "Thank you so much", "Sure", "More?")
        with transaction.atomic():
            queue = locked_queue(person.tenant, user_id=person.external_id, session_id="s1", agent_id="")
            assert queue
            branches.change(queue.session, left=[Turn.objects.get(number=7)], back=[])
        Session.objects.update(ended_at=NOW)
        WorkingMemory.objects.update(due_at=NOW)
        compaction.compact(session_id=Session.objects.get().pk, now=NOW)
        assert WorkingMemory.objects.get().episode_number == 6
        assert check() == []

    def test_retention_counts_it(self, person: EndUser) -> None:
        send(person, "a", "B", "c", "D")
        send(person, "a", "B", "x", "Y")
        with transaction.atomic():
            _delete_up_to(Session.objects.get(), 2)
        assert check() == []
        with transaction.atomic():
            _delete_up_to(Session.objects.get(), 3)
        assert check() == []


class TestWhichSession:
    def session_of(self, person: EndUser, *texts: str, minutes: int = 1) -> str:
        now = timezone.now() + timedelta(minutes=minutes)
        return resent.session_of(
            person.tenant, user_id=person.external_id, agent_id="", messages=messages_of(*texts), now=now
        )

    QUESTION = "What is the weather like in Leiden this week?"

    def test_a_first_message_that_is_asked_again_soon(self, person: EndUser) -> None:
        send(person, self.QUESTION, "Rain")
        assert self.session_of(person, self.QUESTION) == "s1"
        assert self.session_of(person, self.QUESTION, minutes=6) == ""
        assert self.session_of(person, self.QUESTION + "!") == ""

    def test_a_greeting_begins_another_conversation(self, person: EndUser) -> None:
        send(person, "Hi", "Hello")
        assert self.session_of(person, "Hi") == ""
        assert self.session_of(person, "Hi", "Hello", "And now?") == "s1"

    def test_so_does_a_first_message_after_which_more_was_said(self, person: EndUser) -> None:
        send(person, self.QUESTION, "Rain", "And then?", "Snow")
        assert self.session_of(person, self.QUESTION) == ""

    def test_and_one_of_a_session_that_is_not_the_last(self, person: EndUser) -> None:
        send(person, self.QUESTION, "Rain")
        send(person, "Something else", "Yes", session_id="s2")
        assert self.session_of(person, self.QUESTION) == ""

    def test_a_client_that_writes_answers_anew_goes_on_for_some_minutes(self, person: EndUser) -> None:
        """Of what the person said all is at the request's beginning, whatever the answers look like."""
        send(person, "a", "B", "c", "D")
        assert self.session_of(person, "a", "Q", "c", "R", "e") == "s1"
        assert self.session_of(person, "a", "Q", "c", "R", "e", minutes=11) == ""
        assert self.session_of(person, "a", "Q", "x") == ""
        assert self.session_of(person, "x", "Q", "a", "B", "c") == ""


@pytest.mark.django_db(transaction=True)
class TestRaces:
    @pytest.mark.parametrize("leaves", [True, False])
    def test_an_extraction_in_flight_is_thrown_away(self, person: EndUser, model: Model, leaves: bool) -> None:
        send(person, "Hello", "Hi", LEIDEN, "Nice")
        SessionQueue.objects.update(due_at=NOW)
        gate = Gate()

        def say() -> dict[str, Any]:
            gate.stop()
            return {"new_facts": [candidate("Lives in Leiden", evidence=[3])]}

        model.answers.append(say)
        run = gate.meanwhile(
            lambda: consolidation.consolidate(session_id=Session.objects.get().pk, now=NOW),
            lambda: send(person, "Hello", "Hi", DELFT if leaves else LEIDEN, "Nice"),
        )
        assert run
        assert run.status == ("discarded" if leaves else "committed")
        assert Fact.objects.exists() != leaves
        queue = SessionQueue.objects.get()
        assert (queue.lease_token, queue.attempts) == (None, 0)
        assert check() == []

    def test_two_requests_at_once(self, person: EndUser) -> None:
        send(person, "a", "B", "c", "D")
        results = at_once(2, lambda at: send(person, "a", "B", "c" if at else "x", "Y"))
        assert not [one for one in results if isinstance(one, Exception)]
        assert current() in (["a", "B", "c", "Y"], ["a", "B", "x", "Y"])
        assert sorted(Turn.objects.values_list("content", flat=True)) == sorted("aBcDxYY")
        assert check() == []

    def test_an_error_on_the_next_line_leaves_everything_as_it_was(
        self, person: EndUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        send(person, "a", "B", "c", "D")

        def fail(*_: Any, **__: Any) -> Lacking:
            raise RuntimeError

        monkeypatch.setattr(ingest, "save_locked", fail)
        with pytest.raises(RuntimeError):
            send(person, "a", "B", "x", "Y")
        assert (current(), left()) == (["a", "B", "c", "D"], [])
        assert check() == []
