"""What requests of a conversation carry of memory stays where it was, byte for byte: each is a prefix of the next."""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.audit import Actor
from memories.context import context, sent_blocks
from memories.context.context import ContextRequest
from memories.context.parts import DEFAULT_INCLUDE
from memories.curation.facts import editing, forgetting
from memories.gateway import gateway, memory
from memories.gateway.chat import ChatCompletions
from memories.models import ActorKind, EndUser, Fact, SentBlock, Session, Tenant, Turn
from memories.privacy import running
from memories.scoring import terms
from tests import factories
from tests.factories import NOW
from tests.gateway.conftest import Client, without_recalled
from tests.llm.endpoint import Endpoint, Handler
from tests.privacy.erased_world import erasure

CHAT = ChatCompletions()

PROMPT = "Be brief."
STANDING, RECALLED, OTHER = "Prefers metric units", "The bicycle is called Bertha", "Aunt Wilma keeps bees"
QUESTIONS = ("What is my bicycle called?", "And who keeps bees?", "What is my bicycle called again?")


@pytest.fixture(autouse=True)
def person(tenant: Tenant) -> EndUser:
    person = factories.end_user(tenant, external_id="u1")
    factories.fact(person, STANDING, category="preference")
    factories.fact(person, RECALLED)
    return person


class Talk:
    """A conversation in one of the dialects, whose client sends all of it with each request."""

    def __init__(self, dialect: str, client: Client, endpoint: Endpoint) -> None:
        self.dialect, self.client, self.endpoint = dialect, client, endpoint
        self.messages: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {"session": "s1"}
        self.more: dict[str, Any] = {}
        self.user = "u1"
        # Before the endpoint answers.
        self.meanwhile: Callable[[], Any] = lambda: None

    def ask(self, content: Any) -> dict[str, Any]:
        """Say it, and return what the endpoint was sent; the answer stands in the conversation then."""
        self.messages.append({"role": "user", "content": content})
        return self.again()

    def again(self) -> dict[str, Any]:
        sent = self.post()
        self.messages.append({"role": "assistant", "content": f"Answer {len(self.endpoint.requests)}."})
        return sent

    def post(self, status: int = 200) -> dict[str, Any]:
        def respond(handler: Handler) -> None:
            try:
                self.meanwhile()
            finally:
                connection.close()
            answer = self._answer(f"Answer {len(self.endpoint.requests)}.")
            handler.whole(status, json.dumps(answer if status == 200 else {"error": {}}).encode())

        self.endpoint.responds(respond)
        system: dict[str, dict[str, Any]] = {
            "chat": {},
            "responses": {"instructions": PROMPT},
            "messages": {"system": PROMPT, "max_tokens": 9},
        }
        head = [{"role": "system", "content": PROMPT}] if self.dialect == "chat" else []
        items = {"input" if self.dialect == "responses" else "messages": [*head, *self.messages]}
        document = {"model": "m", **system[self.dialect], **items, **self.more}
        path = {"chat": "/chat/completions"}.get(self.dialect, f"/{self.dialect}")
        self.answer = self.client.post(document, path=path, user=self.user, **self.headers)
        assert self.answer.status_code == status, self.answer.text
        return self.endpoint.requests[-1]

    def _answer(self, said: str) -> dict[str, Any]:
        if self.dialect == "chat":
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
            return {"id": "c1", "choices": [choice]}
        part = {"type": "output_text", "text": said, "annotations": []}
        if self.dialect == "messages":
            return {"id": "a1", "type": "message", "role": "assistant", "content": [{"type": "text", "text": said}]}
        item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [part]}
        return {"id": "resp_1", "object": "response", "status": "completed", "output": [item]}

    def calls_a_tool(self) -> list[dict[str, Any]]:
        """What stands in the conversation in the place of an answer."""
        if self.dialect == "chat":
            function = {"name": "weather", "arguments": "{}"}
            call = {"id": "call_1", "type": "function", "function": function}
            return [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_1", "content": "Rain"},
            ]
        if self.dialect == "responses":
            return [
                {"type": "function_call", "id": "f1", "call_id": "call_1", "name": "weather", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "Rain"},
            ]
        use = {"type": "tool_use", "id": "call_1", "name": "weather", "input": {}}
        return [
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "Rain"}]},
        ]


@pytest.fixture
def talk(client: Client, endpoint: Endpoint) -> Talk:
    return Talk("chat", client, endpoint)


@pytest.fixture(params=["chat", "responses", "messages"])
def each(request: pytest.FixtureRequest, client: Client, endpoint: Endpoint) -> Talk:
    """A conversation in each dialect."""
    return Talk(request.param, client, endpoint)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries of the contexts that are built."""
    found: list[str] = []
    build = context.build

    def noted(**given: Any) -> Any:
        found.append(given["request"].query)
        return build(**given)

    monkeypatch.setattr(context, "build", noted)
    return found


def items_of(sent: dict[str, Any]) -> list[Any]:
    found: list[Any] = sent.get("input") or sent["messages"]
    return [*([sent["system"]] if "system" in sent else []), sent.get("instructions"), *found]


def is_prefix(sent: dict[str, Any], later: dict[str, Any]) -> bool:
    one, other = items_of(sent), items_of(later)
    return len(one) < len(other) and other[: len(one)] == one


def text(sent: Any) -> str:
    return json.dumps(sent, ensure_ascii=False)


def operator() -> Actor:
    return Actor(ActorKind.OPERATOR, "1")


def correct(content: str, instead: str) -> None:
    fact = Fact.objects.get(content=content)
    editing.edit_fact(fact_id=fact.pk, tenant=None, changes={"content": instead}, actor=operator(), now=timezone.now())


def forget(content: str) -> None:
    forgetting.forget_fact(
        fact_id=Fact.objects.get(content=content).pk, tenant=None, actor=operator(), reason="", now=timezone.now()
    )


def delete(content: str) -> None:
    fact = Fact.objects.get(content=content)
    forgetting.delete_fact(fact_id=fact.pk, tenant=None, actor=operator(), now=timezone.now())


def hide(content: str) -> None:
    """Somebody else alone may read it."""
    Fact.objects.filter(content=content).update(allowed_users=["u2"])


def indexed(session: Session) -> None:
    """Its turns are found by their words."""
    for turn in session.turns.all():
        turn.terms = terms.pack(turn.own_text)
        turn.save()


MARK = "Zoetermeer"


def a_group_fact(person: EndUser) -> Any:
    speaker = factories.end_user(person.tenant)
    return factories.group_fact(factories.memory_group(speaker, person), speaker, content=f"The van is in {MARK}")


def a_turn(person: EndUser) -> Turn:
    earlier = factories.session(person, [("user", f"I was born in {MARK}.")])
    indexed(earlier)
    return earlier.turns.get()


def changed(**fields: Any) -> Callable[[Any], None]:
    return lambda row: type(row).objects.filter(pk=row.pk).update(**fields)


# Kind → a row that tells the mark, and what makes it tell it no more.
MADE: Mapping[str, tuple[Callable[[EndUser], Any], Callable[[Any], Any]]] = {
    "public fact": (
        lambda person: factories.fact(factories.end_user(person.tenant), f"The office is in {MARK}", scope="public"),
        changed(scope="private"),
    ),
    "profile": (
        lambda person: factories.profile_section(person, summary=f"Works in {MARK}."),
        lambda row: row.delete(),
    ),
    "triple": (lambda person: factories.triple(person, "Wilma", "lives_in", MARK), changed(status="trashed")),
    "group fact": (a_group_fact, changed(trashed_at=NOW)),
    "file": (
        lambda person: factories.memory_file(person, "/memories/AGENTS.md", f"Seen in {MARK}.\n"),
        changed(content="Empty", version=2),
    ),
    "diary": (lambda person: factories.diary_entry(person, f"Asked about {MARK}."), changed(trashed_at=NOW)),
    "episode": (
        lambda person: factories.episode(factories.session(person, [("user", "Hm")]), f"Spoke about {MARK}"),
        changed(summary="Spoke about something", status="trashed"),
    ),
    "turn": (a_turn, changed(content="", author="application")),
}


def test_each_request_is_a_prefix_of_the_next(each: Talk, person: EndUser) -> None:
    sent = [each.ask(QUESTIONS[0])]
    factories.fact(person, OTHER)
    sent += [each.ask(question) for question in QUESTIONS[1:]]
    assert [is_prefix(*pair) for pair in pairwise(sent)] == [True, True]
    # The block of each question stands before it, and what stands once is not told again.
    assert [[text(one).count(fact) for fact in (STANDING, RECALLED, OTHER)] for one in sent] == [
        [1, 1, 0],
        [1, 1, 1],
        [1, 1, 1],
    ]
    assert int(each.answer.headers["x-memory-tokens"]) > 0


def test_where_the_blocks_stand(each: Talk) -> None:
    sent = each.ask(QUESTIONS[0])
    system = {"chat": "messages", "responses": "instructions", "messages": "system"}[each.dialect]
    head = text(sent[system][0] if each.dialect == "chat" else sent[system])
    assert (STANDING in head, RECALLED in head) == (True, False)
    without = without_recalled(sent)
    assert (RECALLED in text(sent), RECALLED in text(without)) == (True, False)
    newest = (without.get("input") or without["messages"])[-1]
    plain = [{"type": "text", "text": QUESTIONS[0]}] if each.dialect == "messages" else QUESTIONS[0]
    assert newest == {"role": "user", "content": plain}
    roles = [one["role"] for one in (sent.get("input") or sent["messages"])]
    assert roles == {"chat": ["system", "user"], "responses": ["developer", "user"], "messages": ["user"]}[each.dialect]
    assert Turn.objects.filter(content__contains="<memory>").count() == 0


def test_while_tools_are_at_work_nothing_is_built_anew(each: Talk, person: EndUser, built: list[str]) -> None:
    first = each.ask(QUESTIONS[0])
    each.messages[-1:] = each.calls_a_tool()
    factories.fact(person, OTHER)
    second = each.post()
    assert (is_prefix(first, second), len(built)) == (True, 1)
    each.messages[-1:] = [*each.messages[-1:], {"role": "assistant", "content": "It rains."}]
    third = each.ask("And who keeps bees?")
    assert (is_prefix(second, third), OTHER in text(third), len(built)) == (True, True, 2)


def test_results_of_tools_come_first_beside_what_the_person_says(client: Client, endpoint: Endpoint) -> None:
    talk = Talk("messages", client, endpoint)
    talk.ask("Does it rain?")
    talk.messages[-1:] = talk.calls_a_tool()
    talk.messages[-1]["content"].append({"type": "text", "text": QUESTIONS[0]})
    factories.fact(EndUser.objects.get(), OTHER)
    sent = talk.post()["messages"]
    kinds = [part["type"] for part in sent[-1]["content"]]
    assert (kinds[0], kinds[-1], len(kinds)) == ("tool_result", "text", 3)
    assert OTHER in sent[-1]["content"][1]["text"]
    assert [one["role"] for one in sent] == ["user", "assistant", "user"]


@pytest.mark.parametrize("status", [200, 500])
def test_the_same_request_twice_is_the_same_bytes(each: Talk, person: EndUser, built: list[str], status: int) -> None:
    each.messages.append({"role": "user", "content": QUESTIONS[0]})
    first = each.post(status=status)
    factories.fact(person, OTHER)
    factories.fact(person, "Wants short answers", category="preference")
    assert (each.post(), len(built)) == (first, 1)
    # An answer that the client began is gone on with.
    each.messages.append({"role": "assistant", "content": "It is"})
    assert (items_of(each.post())[:-1], len(built)) == (items_of(first), 1)


def test_without_a_name_the_conversation_is_known_by_its_answers(talk: Talk) -> None:
    talk.headers = {}
    sent = [talk.ask(question) for question in QUESTIONS]
    assert [is_prefix(*pair) for pair in pairwise(sent)] == [True, True]


@pytest.mark.parametrize("named", [{"session": "s1"}, {}])
def test_what_is_only_read_stays_as_it_was_too(talk: Talk, named: dict[str, str]) -> None:
    """Blocks hold words of memory, and none of the conversation: they are kept though that is not."""
    talk.headers = {**named, "mode": "read-only"}
    sent = [talk.ask(question) for question in QUESTIONS]
    assert [is_prefix(*pair) for pair in pairwise(sent)] == [True, True]
    assert Turn.objects.count() == 0
    talk.headers = {**named, "mode": "off"}
    assert text(talk.ask("And now?")).count("<memory>") == 0


def test_what_is_new_and_stands_is_told_where_the_conversation_is(talk: Talk, person: EndUser) -> None:
    first = talk.ask(QUESTIONS[0])
    factories.fact(person, "Wants short answers", category="preference")
    second = talk.ask("Hello")
    assert is_prefix(first, second)
    assert "Wants short answers" in text(second["messages"][-1])
    assert text(talk.ask("Hello?")).count("Wants short answers") == 1


def test_a_vocabulary_that_is_loaded_meanwhile_changes_nothing_that_was_sent(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.more = {"model": "mistral-small"}
    sent: list[dict[str, Any]] = []
    told: list[str] = []
    for is_loaded in (False, True, False):
        monkeypatch.setattr(memory, "is_loaded", lambda _, found=is_loaded: found)
        sent.append(talk.ask(QUESTIONS[len(sent)]))
        told.append(talk.answer.headers["x-memory-tokenizer"])
    assert [is_prefix(*pair) for pair in pairwise(sent)] == [True, True]
    assert told == ["o200k_base", "mistral", "o200k_base"]


def test_an_empty_memory_stays_empty_at_its_place(talk: Talk, tenant: Tenant) -> None:
    talk.user = "u2"
    first = talk.ask(QUESTIONS[0])
    assert (talk.answer.headers["x-memory-reason"], "<memory>" in text(first)) == ("empty", False)
    factories.fact(EndUser.objects.get(external_id="u2"), OTHER)
    second = talk.ask(QUESTIONS[1])
    assert (is_prefix(first, second), OTHER in text(second)) == (True, True)


class TestTruth:
    """What does not hold any more is not sent again, whatever a cache would gain."""

    def test_a_corrected_instruction(self, each: Talk) -> None:
        each.ask(QUESTIONS[0])
        correct(STANDING, "Prefers imperial units")
        second = each.ask(QUESTIONS[1])
        assert (STANDING in text(second), "Prefers imperial units" in text(second)) == (False, True)
        assert RECALLED in text(second)
        assert is_prefix(second, each.ask(QUESTIONS[2]))

    @pytest.mark.parametrize("kind", ["correct", "forget", "delete", "hide"])
    def test_a_fact(self, talk: Talk, kind: str) -> None:
        talk.ask(QUESTIONS[0])
        {"correct": lambda fact: correct(fact, "The bicycle is called Gustav"), "forget": forget, "delete": delete,
         "hide": hide}[kind](RECALLED)  # fmt: skip
        second = talk.ask("Hello")
        assert (RECALLED in text(second), STANDING in text(second)) == (False, True)
        assert is_prefix(second, talk.ask(QUESTIONS[1]))

    def test_only_what_tells_it_goes(self, talk: Talk, person: EndUser) -> None:
        talk.ask(QUESTIONS[0])
        factories.fact(person, OTHER)
        talk.ask(QUESTIONS[1])
        forget(OTHER)
        third = talk.ask("Hello")
        assert [fact in text(third) for fact in (STANDING, RECALLED, OTHER)] == [True, True, False]

    def test_while_the_answer_is_given(self, talk: Talk) -> None:
        """The request was read before, and is kept afterwards."""
        talk.meanwhile = lambda: correct(RECALLED, "The bicycle is called Gustav")
        assert RECALLED in text(talk.ask(QUESTIONS[0]))
        talk.meanwhile = lambda: None
        assert RECALLED not in text(talk.ask(QUESTIONS[1]))

    def test_what_a_turn_says(self, talk: Talk, person: EndUser) -> None:
        earlier = factories.session(person, [("user", "My car is parked in Rotterdam.")])
        fact = factories.fact(person, "The car is parked in Rotterdam")
        factories.evidence(fact, earlier.turns.get(), "My car is parked in Rotterdam")
        indexed(earlier)
        assert "My car is parked" in text(talk.ask("Where is my car?"))
        forget("The car is parked in Rotterdam")
        second = talk.ask("Hello")
        assert "Rotterdam" not in text(second)
        assert is_prefix(second, talk.ask("Hello?"))

    @pytest.mark.parametrize("kind", MADE)
    def test_each_kind(self, talk: Talk, person: EndUser, kind: str) -> None:
        make, change = MADE[kind]
        talk.headers["include"] = "profile,facts,graph,groups,files,diary,episodes,turns"
        row = make(person)
        assert MARK in text(talk.ask("Where was I born, where do I work, where does Wilma live, where is the van?"))
        change(row)
        second = talk.ask("Hello")
        assert MARK not in text(second)
        assert is_prefix(second, talk.ask("Hello?"))

    def test_a_job_that_goes_on_with_the_profile_changes_nothing(self, talk: Talk, person: EndUser) -> None:
        section = factories.profile_section(person, summary="Works at a bakery.", actor_kind=ActorKind.RUN)
        first = talk.ask(QUESTIONS[0])
        section.summary = "Works at a bakery, and bakes rye."
        section.save()
        assert is_prefix(first, talk.ask(QUESTIONS[1]))

    def test_a_person_whose_memory_is_off(self, talk: Talk, person: EndUser) -> None:
        first = talk.ask(QUESTIONS[0])
        EndUser.objects.update(serve=False)
        assert "<memory>" not in text(talk.again())
        EndUser.objects.update(serve=True, restricted_at=NOW)
        assert "<memory>" not in text(talk.again())
        EndUser.objects.update(restricted_at=None)
        assert is_prefix(first, talk.again())


class TestErasure:
    @pytest.fixture(autouse=True)
    def home(self, settings: Any, tmp_path: Path) -> None:
        settings.HOME = tmp_path
        settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")

    def test_all_blocks_go_with_the_person(self, talk: Talk, person: EndUser) -> None:
        talk.ask(QUESTIONS[0])
        assert SentBlock.objects.count() == 2
        done = running.carry_out(case_id=erasure(person).pk, now=timezone.now())
        assert (done.state, done.findings["hits"], SentBlock.objects.count()) == ("completed", {}, 0)
        assert "<memory>" not in text(talk.ask(QUESTIONS[1]))

    def test_nothing_is_kept_of_somebody_erased_meanwhile(self, talk: Talk, person: EndUser) -> None:
        talk.meanwhile = lambda: running.carry_out(case_id=erasure(person).pk, now=timezone.now())
        assert RECALLED in text(talk.ask(QUESTIONS[0]))
        assert SentBlock.objects.exclude(text="").count() == 0

    def test_what_was_told_to_others_goes_too(self, talk: Talk, person: EndUser) -> None:
        about = factories.end_user(person.tenant)
        factories.group_fact(factories.memory_group(about, person), about, content="Skates to work", about=about)
        factories.fact(about, "The office is in Delft", scope="public")
        first = talk.ask("Who skates to work, and where is the office?")
        assert ["Skates to work" in text(first), "office is in Delft" in text(first)] == [True, True]
        done = running.carry_out(case_id=erasure(about).pk, now=timezone.now())
        assert (done.state, done.findings["hits"]) == ("completed", {})
        assert not SentBlock.objects.filter(text__contains="Delft").exists()
        assert not SentBlock.objects.filter(text__contains="Skates").exists()
        assert "Delft" not in text(talk.ask("Hello"))


def test_of_two_requests_at_once_one_says_what_stands_at_the_place(talk: Talk, person: EndUser) -> None:
    """Both are answered, and the conversation goes on with the block of one."""
    both = threading.Barrier(2, timeout=60)
    talk.meanwhile = both.wait
    talk.messages.append({"role": "user", "content": QUESTIONS[0]})
    threads = [threading.Thread(target=talk.post) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert SentBlock.objects.count() == 2
    sent = talk.endpoint.requests[:2]
    talk.meanwhile = lambda: None
    talk.messages.append({"role": "assistant", "content": "Bertha."})
    third = talk.ask(QUESTIONS[1])
    assert any(is_prefix(one, third) for one in sent)


def test_a_history_that_the_client_changes_is_another_conversation(talk: Talk) -> None:
    talk.ask(QUESTIONS[0])
    talk.ask(QUESTIONS[1])
    talk.messages[:-2] = [{"role": "user", "content": "Summary: they spoke about a bicycle."}]
    sent = talk.ask(QUESTIONS[2])
    assert (text(sent).count(STANDING), text(sent).count(RECALLED)) == (1, 1)
    assert is_prefix(sent, talk.ask("Hello"))


def test_a_process_that_dies_before_it_keeps_what_was_sent(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sent_blocks, "keep", lambda *_, **__: 0)
        assert RECALLED in text(talk.ask(QUESTIONS[0]))
    second = talk.ask(QUESTIONS[1])
    assert (text(second).count(RECALLED), is_prefix(second, talk.ask(QUESTIONS[2]))) == (1, True)


def test_another_person_with_the_same_words_is_told_nothing_of_it(talk: Talk, tenant: Tenant) -> None:
    factories.fact(factories.end_user(tenant, external_id="u2"), OTHER)
    first = talk.ask(QUESTIONS[0])
    assert RECALLED in text(first)
    talk.user = "u2"
    talk.messages[:] = talk.messages[:1]
    second = talk.again()
    assert (RECALLED in text(second), STANDING in text(second)) == (False, False)
    # Neither is another agent of the same person.
    talk.user, talk.headers = "u1", {"session": "s1", "agent": "other"}
    fact = Fact.objects.get(content=RECALLED)
    Fact.objects.filter(pk=fact.pk).update(agent_id="mine")
    talk.messages[:] = talk.messages[:1]
    assert RECALLED not in text(talk.again())


def test_where_the_context_is_late_what_was_sent_before_stays(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    first = talk.ask(QUESTIONS[0])
    late, at_hand = threading.Event(), threading.Event()
    build = context.build

    def slow(**given: Any) -> Any:
        at_hand.set()
        late.wait(60)
        return build(**given)

    async def in_time(_recalling: Any) -> bool:
        return not await asyncio.get_running_loop().run_in_executor(None, at_hand.wait, 60)

    with monkeypatch.context() as patched:
        patched.setattr(context, "build", slow)
        patched.setattr(gateway, "_in_time", in_time)
        second = talk.ask(QUESTIONS[1])
        late.set()
    assert (talk.answer.headers["x-memory"], talk.answer.headers["x-memory-reason"]) == ("used", "timeout")
    assert is_prefix(first, second)
    assert is_prefix(second, talk.ask(QUESTIONS[2]))


class TestMarks:
    """`cache_control` of Anthropic's protocol."""

    @pytest.fixture
    def talk(self, client: Client, endpoint: Endpoint) -> Talk:
        return Talk("messages", client, endpoint)

    def test_where_nobody_marks_anything_the_stable_block_is_marked(self, talk: Talk) -> None:
        sent = talk.ask(QUESTIONS[0])
        assert [part.get("cache_control") for part in sent["system"]] == [None, {"type": "ephemeral"}]
        assert text(sent).count("cache_control") == 1

    def test_the_client_s_own_stay_alone(self, talk: Talk) -> None:
        part = {"type": "text", "text": QUESTIONS[0], "cache_control": {"type": "ephemeral", "ttl": "1h"}}
        first = talk.ask([part])
        assert first["messages"][-1]["content"][-1] == part
        assert text(first).count("cache_control") == 1
        # A client moves its mark on; the message is the same.
        talk.messages[0]["content"] = [{"type": "text", "text": QUESTIONS[0]}]
        second = talk.ask([{**part, "text": QUESTIONS[1]}])
        assert second["messages"][0]["content"][0] == first["messages"][0]["content"][0]

    @pytest.mark.parametrize("more", [
        {"tools": [{"name": "weather", "input_schema": {}, "cache_control": {"type": "ephemeral"}}]},
        {"cache_control": {"type": "ephemeral"}},
        {"system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]},
    ])  # fmt: skip
    def test_marks_anywhere_are_the_client_s(self, talk: Talk, more: dict[str, Any]) -> None:
        talk.more = more
        assert text(talk.ask(QUESTIONS[0])).count("cache_control") == 1


def test_a_conversation_that_the_endpoint_keeps(client: Client, endpoint: Endpoint) -> None:
    """Only what is new travels: the stable block goes in the instructions, the other one before the new input."""
    talk = Talk("responses", client, endpoint)
    first = talk.ask(QUESTIONS[0])
    talk.messages.clear()
    talk.more = {"previous_response_id": "resp_1"}
    factories.fact(EndUser.objects.get(), OTHER)
    second = talk.ask(QUESTIONS[1])
    assert second["instructions"] == first["instructions"]
    assert [item["role"] for item in second["input"]] == ["developer", "user"]
    assert OTHER in text(second["input"][0])
    # What the endpoint has is not told again; what a tool answers there brings nothing up.
    talk.messages = talk.calls_a_tool()[1:]
    third = talk.post()
    assert (third["instructions"], third["input"]) == (first["instructions"], talk.messages)
    talk.messages, talk.more = [], {"previous_response_id": "resp_2"}
    assert [text(talk.ask(QUESTIONS[1])).count(fact) for fact in (RECALLED, OTHER)] == [0, 0]
    assert Turn.objects.filter(content__contains=OTHER).count() == 0


def test_the_same_words_later_are_another_message(talk: Talk, person: EndUser) -> None:
    """A client that sends its newest message alone says "yes" more than once."""
    for words in ("Yes", "What is my bicycle called?"):
        talk.messages.clear()
        talk.ask(words)
    factories.fact(person, OTHER)
    talk.messages.clear()
    assert OTHER in text(talk.ask("What is my bicycle called? And who keeps bees?"))
    Fact.objects.filter(content=OTHER).delete()
    factories.fact(person, "Uncle Karl says yes to bees")
    talk.messages.clear()
    assert "Karl" in text(talk.ask("Yes"))


def test_of_requests_beside_conversations_nothing_is_kept(talk: Talk) -> None:
    talk.headers = {"said": "none"}
    assert STANDING in text(talk.ask("Make a title of this."))
    assert SentBlock.objects.count() == 0


def test_where_nobody_says_anything_it_stands_with_the_prompt(talk: Talk) -> None:
    sent = talk.post()
    assert [one["role"] for one in sent["messages"]] == ["system"]
    assert STANDING in text(sent)


def test_it_costs_one_statement_before_the_first_byte(talk: Talk, person: EndUser) -> None:
    """A request whose places all have blocks saves those of a context."""

    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            exchange = memory.open_exchange(CHAT, headers, json.dumps(document).encode())
            opened = len(captured)
            given = memory.recall(exchange, CHAT)
        counts.append(len(captured) - opened)
        memory.keep_sent(exchange, given)
        return counts[-1]

    counts: list[int] = []
    headers = {"authorization": f"Bearer {talk.client.key}", "x-memory-user": "u1", "x-memory-session": "s1"}
    document: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": QUESTIONS[0]}]}
    for _ in range(2):
        statements()
    # The second time there are the blocks.
    assert counts[1] == 1
    with CaptureQueriesContext(connection) as alone:
        request = ContextRequest(
            "u1", session_id="s1", query=QUESTIONS[1], include=DEFAULT_INCLUDE | {"working_memory"}
        )
        context.build(tenant=person.tenant, request=request, now=timezone.now())
    document["messages"] += [{"role": "assistant", "content": "Bertha."}, {"role": "user", "content": QUESTIONS[1]}]
    assert statements() <= len(alone) + 1


def test_of_too_many_blocks_the_older_half_goes(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_blocks, "MOST_BLOCKS", 4)
    sent = [talk.ask(f"Hello {number}") for number in range(6)]
    assert SentBlock.objects.filter(kind="volatile").count() <= 4
    assert SentBlock.objects.filter(kind="stable").count() == 1
    # It goes at once, so that the next requests begin alike again.
    assert [is_prefix(*pair) for pair in pairwise(sent[1:])].count(False) <= 1


def test_after_a_week_they_are_deleted(talk: Talk) -> None:
    talk.ask(QUESTIONS[0])
    assert sent_blocks.sweep(timezone.now()) == 0
    SentBlock.objects.update(sent_at=timezone.now() - sent_blocks.KEPT - timedelta(minutes=1))
    assert sent_blocks.sweep(timezone.now()) == 2
