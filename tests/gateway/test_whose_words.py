"""Role is not authorship: what real clients put into the user's role is not the person's word, and opens, joins and
hides no conversation."""

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.capture import authors, seen_texts
from memories.gateway import gateway, memory
from memories.models import Author, EndUser, SeenText, Session, Tenant, Turn
from tests import factories
from tests.gateway.conftest import Client
from tests.llm.endpoint import Endpoint, sends

pytestmark = pytest.mark.django_db(transaction=True)


def user(text: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def model(text: str | None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def calls(name: str, **arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return model(None, tool_calls=[{"id": "call_1", "type": "function", "function": function}])


class Talk:
    """A client that sends its requests one after the other, each with the answer that it gets."""

    def __init__(self, client: Client, endpoint: Endpoint) -> None:
        self._client, self._endpoint = client, endpoint

    def ask(self, *messages: dict[str, Any], answer: Any = "Noted.", **more: Any) -> Any:
        """The answer's headers. `headers`: of the request; the others are fields of its body."""
        message = answer if isinstance(answer, dict) else model(answer)
        reply = {"id": "c1", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        self._endpoint.responds(sends(json.dumps(reply).encode()))
        headers = {"user": "u1", **more.pop("headers", {})}
        response = self._client.post({"model": "m", "messages": list(messages), **more}, **headers)
        assert response.status_code == 200, response.text
        return response.headers


@pytest.fixture
def talk(client: Client, endpoint: Endpoint) -> Talk:
    return Talk(client, endpoint)


def said() -> list[str]:
    """What the person said, of all conversations as they are now."""
    return list(
        Turn.objects.current().said().order_by("session__created_at", "number").values_list("content", flat=True)
    )


def author_of(text: str) -> str:
    return Turn.objects.get(content=text).author


class TestConversations:
    def test_a_greeting_joins_no_conversations(self, talk: Talk) -> None:
        greeting = model("Welcome! How may I help?")
        talk.ask(greeting, user("My sister lives in Ghent."))
        talk.ask(greeting, user("I bake bread."))
        assert (Session.objects.count(), said()) == (2, ["My sister lives in Ghent.", "I bake bread."])
        # The positive control: an answer that the hub passed on does.
        talk.ask(greeting, user("I bake bread."), model("Noted."), user("With rye."))
        assert (Session.objects.count(), said()[-1]) == (2, "With rye.")

    def test_examples_are_the_applications(self, talk: Talk) -> None:
        example = (user("I hate figs. Menu?"), model("Soup."))
        talk.ask(*example, user("I hate dates. Menu?"))
        talk.ask(*example, user("I love figs. Menu?"))
        assert (Session.objects.count(), said()) == (2, ["I hate dates. Menu?", "I love figs. Menu?"])
        assert set(Turn.objects.filter(content="I hate figs. Menu?").values_list("author", flat=True)) == {
            "application"
        }

    def test_a_question_beside_the_conversation_leaves_nothing(self, talk: Talk) -> None:
        begun = (user("I row."), model("Nice."))
        talk.ask(user("I row."), answer="Nice.")
        talk.ask(*begun, user("I ski."), answer="Good.")
        talk.ask(*begun, user("Put all of this into one line."), answer="Sports.")
        assert said() == ["I row.", "I ski."]
        talk.ask(*begun, user("I ski."), model("Good."), user("I sail."))
        assert (Session.objects.count(), said()) == (1, ["I row.", "I ski.", "I sail."])

    @pytest.mark.parametrize(
        "head", [(), (user("Earlier, in short: rowing."),), (system("Summary: rowing."),)], ids=len
    )
    def test_a_conversation_without_its_head_goes_on(self, talk: Talk, head: Sequence[dict[str, Any]]) -> None:
        talk.ask(user("I row."), answer="Nice.")
        talk.ask(user("I row."), model("Nice."), user("I ski."), answer="Good.")
        talk.ask(*head, user("I ski."), model("Good."), user("I sail."), answer="Well.")
        assert (Session.objects.count(), said()) == (1, ["I row.", "I ski.", "I sail."])

    def test_letters_are_compared_composed(self, talk: Talk) -> None:
        talk.ask(user("Rain in Ko\u0308ln?"), answer="Yes, today.")
        talk.ask(user("Rain in K\u00f6ln?"), model("Yes, today."), user("I row."))
        assert (Session.objects.count(), len(said())) == (1, 2)

    def test_arguments_are_compared_by_what_they_mean(self, talk: Talk) -> None:
        talk.ask(user("Rain in Ghent?"), answer=calls("weather", city="Ghent"))
        called = calls("weather", city="Ghent")
        called["tool_calls"][0]["function"]["arguments"] = '{"city":"Ghent"}'
        talk.ask(user("Rain in Ghent?"), called, {"role": "tool", "tool_call_id": "call_1", "content": "rain"})
        assert (Session.objects.count(), said()) == (1, ["Rain in Ghent?"])

    def test_answers_that_the_client_writes_anew(self, talk: Talk) -> None:
        talk.ask(user("Rain in Ghent?"), answer=calls("weather", city="Ghent"))
        talk.ask(user("Rain in Ghent?"), model("Calling tools: weather"), user("Observation: rain"))
        assert (Session.objects.count(), said()) == (1, ["Rain in Ghent?"])
        assert author_of("Observation: rain") == Author.APPLICATION

    def test_without_a_persons_word_there_is_no_conversation(self, talk: Talk) -> None:
        headers = talk.ask(system("Who speaks next: ann or bob?"), answer="ann")
        assert (headers["x-memory-kept"], "x-memory-session" in headers) == ("no", False)
        assert not Turn.objects.exists()


class TestBesideAConversation:
    """Requests for titles and summaries are kept nowhere."""

    TITLE = system("You write titles of three words.")

    def test_before_the_conversation(self, talk: Talk) -> None:
        talk.ask(self.TITLE, user("A title for this:\n"), user("I row at dawn."), answer="Rowing")
        talk.ask(user("I row at dawn."))
        assert (Session.objects.count(), said()) == (1, ["I row at dawn."])

    def test_before_it_without_a_word_around(self, talk: Talk) -> None:
        talk.ask(self.TITLE, user("I row at dawn."), answer="Rowing")
        talk.ask(system("You are a coach."), user("I row at dawn."), answer="Well done.")
        talk.ask(system("You are a coach."), user("I row at dawn."), model("Well done."), user("And at dusk."))
        assert (Session.objects.count(), said()) == (1, ["I row at dawn.", "And at dusk."])

    @pytest.mark.parametrize("judge_first", [True, False])
    def test_a_judge_of_every_message(self, talk: Talk, judge_first: bool) -> None:
        judge, coach = system("You judge what is harmless."), system("You are a coach.")
        history: list[dict[str, Any]] = []
        tools = [{"type": "function", "function": {"name": "tide"}}]
        for text in ("I row at dawn.", "And at dusk.", "Is that much?"):
            if judge_first or history:
                talk.ask(judge, user(text), answer="Harmless.")
            talk.ask(coach, *history, user(text), tools=tools)
            if not judge_first and not history:
                talk.ask(judge, user(text), answer="Harmless.")
            history += [user(text), model("Noted.")]
        assert (Session.objects.count(), said()) == (1, ["I row at dawn.", "And at dusk.", "Is that much?"])
        # The positive control: the prompt of the conversation begins another one.
        talk.ask(coach, user("I swim now."), tools=tools)
        assert (Session.objects.count(), said()[-1]) == (2, "I swim now.")

    @pytest.mark.parametrize("judge_first", [True, False])
    def test_a_judge_that_is_asked_meanwhile(
        self, client: Client, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, judge_first: bool
    ) -> None:
        """Both requests have come before either is kept; then one is kept after the other."""
        judge, coach = system("You judge what is harmless."), system("You are a coach.")
        tools = [{"type": "function", "function": {"name": "tide"}}]
        both, first = threading.Barrier(2), threading.Event()
        keep = memory.keep

        def in_order(exchange: memory.Exchange) -> Any:
            is_judge = exchange.asked is not None and not exchange.asked.has_tools
            if is_judge != judge_first:
                assert first.wait(60)
            kept = keep(exchange)
            if is_judge == judge_first:
                first.set()
            return kept

        def answers(handler: Any) -> None:
            both.wait(60)
            reply = {"id": "c1", "choices": [{"index": 0, "finish_reason": "stop", "message": model("Noted.")}]}
            sends(json.dumps(reply).encode())(handler)

        monkeypatch.setattr(memory, "keep", in_order)
        history: list[dict[str, Any]] = []
        for text in ("I row at dawn.", "And at dusk.", "Is that much?"):
            endpoint.responds(answers, answers)
            first.clear()
            requests = [
                {"model": "m", "messages": [judge, user(text)]},
                {"model": "m", "messages": [coach, *history, user(text)], "tools": tools},
            ]
            with ThreadPoolExecutor(2) as pool:
                answered = list(pool.map(lambda document: client.post(document, user="u1"), requests))
            assert [one.status_code for one in answered] == [200, 200]
            history += [user(text), model("Noted.")]
        assert (Session.objects.count(), said()) == (1, ["I row at dawn.", "And at dusk.", "Is that much?"])

    COACH = system("You are a coach.\nBe kind.\nAnswer shortly.")

    def test_after_it_by_its_name(self, talk: Talk) -> None:
        talk.ask(self.COACH, user("I row at dawn."), headers={"session": "s1"})
        headers = talk.ask(self.TITLE, user("I row at dawn."), answer="Rowing", headers={"session": "s1"})
        assert headers["x-memory-kept"] == "no"
        assert (Session.objects.count(), said()) == (1, ["I row at dawn."])
        assert not Turn.objects.filter(content="Rowing").exists()

    def test_after_it_by_its_words(self, talk: Talk) -> None:
        talk.ask(self.COACH, user("I row at dawn."))
        talk.ask(self.COACH, user("I row at dawn."), model("Noted."), user("And at dusk."))
        headers = talk.ask(self.TITLE, user("I row at dawn."), answer="Rowing")
        assert headers["x-memory-kept"] == "no"
        # The positive control: with the same prompt it is another conversation.
        assert "x-memory-kept" not in talk.ask(self.COACH, user("I row at dawn."))
        assert Session.objects.count() == 2

    def test_a_prompt_that_changes_a_little_is_the_same(self, talk: Talk) -> None:
        said_to = [system(f"You are a coach.\nBe kind.\nIt is {hour} o'clock.") for hour in (8, 9)]
        talk.ask(said_to[0], user("I row at dawn."))
        talk.ask(said_to[1], user("I row at dawn."), model("Noted."), user("And at dusk."))
        assert said() == ["I row at dawn.", "And at dusk."]

    def test_what_goes_on_after_all_is_kept_then(self, talk: Talk) -> None:
        coach, other = system("You are a coach."), system("You are a cook now.")
        begun = (user("I row at dawn."), model("Noted."), user("What shall I eat before I row?"))
        talk.ask(coach, user("I row at dawn."))
        talk.ask(other, *begun, answer="Porridge.")
        assert said() == ["I row at dawn."]
        talk.ask(other, *begun, model("Porridge."), user("With figs?"))
        assert said() == ["I row at dawn.", "What shall I eat before I row?", "With figs?"]


class TestBehindASummary:
    """A framework replaces all but the last answer by a summary that a model made."""

    SUMMARY = "The person rows at dawn and sleeps badly."

    def begin(self, talk: Talk) -> None:
        tide = calls("tide", place="Ghent")
        begun = (user("I row at dawn."), tide, {"role": "tool", "tool_call_id": "call_1", "content": "Ghent: low"})
        talk.ask(user("I row at dawn."), answer=tide)
        talk.ask(*begun, answer="The tide is low.")

    def test_it_goes_on(self, talk: Talk) -> None:
        self.begin(talk)
        talk.ask(user("Sum up:\nUser: I row at dawn.\nAssistant: The tide is low."), answer=self.SUMMARY)
        talk.ask(user(f"So far:\n\n{self.SUMMARY}"), model("The tide is low."), user("And at dusk."))
        assert (Session.objects.count(), said()) == (1, ["I row at dawn.", "And at dusk."])

    def test_behind_a_text_that_never_passed_it_is_another(self, talk: Talk) -> None:
        self.begin(talk)
        talk.ask(user("Say how it is."), model("The tide is low."), user("And at dusk."))
        assert Session.objects.count() == 2


class TestWordsThatComeBack:
    def test_an_order_around_what_was_said(self, talk: Talk) -> None:
        talk.ask(user("I row at dawn."), answer="Nice.")
        talk.ask(user("I row at dawn."), model("Nice."), user("And I ski in winter."))
        said_so_far = "<messages>\nHuman: I row at dawn.\nAI: model, Nice.\nHuman: And I ski in winter.\n</messages>"
        order = "The user hands you the whole history. Keep what matters most of it for later. " * 4
        headers = talk.ask(user(f"<role>\nArchivist\n</role>\n\n{order}\n\n{said_so_far}"), answer="They row.")
        assert (headers["x-memory-kept"], said()) == ("no", ["I row at dawn.", "And I ski in winter."])
        # The positive control: somebody who tells of themselves shows the same.
        told = "In May I stop with both of them, since my back hurts and my doctor says so. " * 4
        talk.ask(user(f"{told}\n\n{said_so_far}"))
        assert len(said()) == 3

    def test_a_summary_of_a_model(self, talk: Talk) -> None:
        talk.ask(user("I row."), answer="Nice.")
        talk.ask(user("Sum up:\nUser: I row.\nAssistant: Nice."), answer="The person rows. I cannot eat figs.")
        talk.ask(user("So far:\n\nThe person rows. I cannot eat figs."), user("Go on with the plan."))
        assert said() == ["I row.", "Go on with the plan."]
        talk.ask(user("The person rows. I cannot eat figs."))
        assert "The person rows. I cannot eat figs." not in said()

    def test_an_order_to_another_agent(self, talk: Talk) -> None:
        order = "Book the table. I prefer the garden."
        talk.ask(user("Plan the evening."), answer=calls("task", description=order))
        headers = talk.ask(system("You are a worker."), user(order), answer="Done.")
        assert (headers["x-memory-kept"], said()) == ("no", ["Plan the evening."])

    def test_a_tools_result(self, talk: Talk) -> None:
        begun = (user("Read the card."), calls("read", path="card"))
        talk.ask(begun[0], answer=begun[1])
        talk.ask(*begun, {"role": "tool", "tool_call_id": "call_1", "content": "I cannot eat figs."}, answer="Read.")
        talk.ask(user("I cannot eat figs."))
        assert said() == ["Read the card."]

    @pytest.mark.parametrize(
        "order",
        [
            # As short as sentences of Chinese are, in a frame, and as the answer's own JSON.
            ("把它烤好。", "我吃黑麦。", "我叫小工。"),
            "Current task: Bake it. I eat rye. My name is Worker.\n\nYou must hand over the complete bread.",
        ],
        ids=["chinese", "framed"],
    )
    def test_an_order_in_other_forms(self, talk: Talk, order: Any) -> None:
        told = "".join(order) if isinstance(order, tuple) else "Bake it. I eat rye. My name is Worker."
        talk.ask(user("Plan my bread."), answer=calls("task", description=told))
        talk.ask(system("You bake."), user(told if isinstance(order, tuple) else order), answer="Done.")
        assert said() == ["Plan my bread."]
        # The positive control: nobody ordered this before.
        talk.ask(system("You bake."), user("我自己住在苏州。"), answer="Good.")
        assert said() == ["Plan my bread.", "我自己住在苏州。"]

    def test_texts_of_json(self, talk: Talk) -> None:
        talk.ask(user("What is on the page?"), answer=calls("fetch"))
        page = json.dumps({"page": "I live in Oslo, dear guest. I like herring."})
        called = (user("What is on the page?"), calls("fetch"))
        talk.ask(*called, {"role": "tool", "tool_call_id": "call_1", "content": page}, answer="A greeting.")
        talk.ask(user("I live in Oslo, dear guest. I like herring."))
        assert said() == ["What is on the page?"]
        answer = json.dumps({"facts": ["The person rows on Sundays.", "I eat no peanuts."]})
        talk.ask(user("Which facts are there?"), answer=f"```json\n{answer}\n```")
        talk.ask(user("I eat no peanuts."))
        assert said() == ["What is on the page?", "Which facts are there?"]

    def test_a_talk_that_is_told_again_with_an_order(self, talk: Talk) -> None:
        talk.ask(user("I eat herring."), answer="Good.")
        retold = "<chat_history>\nUSER: I eat herring.\nASSISTANT: Good.\n</chat_history>"
        talk.ask(
            user(f"### Task:\nSuggest what could be asked next, as a list of questions.\n{retold}\n### Output:\nJSON")
        )
        talk.ask(user("Give it a name of five words at most, and nothing else.\n\nUser: I eat herring.\nAI: Good."))
        assert (Session.objects.count(), said()) == (1, ["I eat herring."])
        # The positive controls: somebody speaks of themselves beside it, and a talk that nobody had here.
        talk.ask(user(f"I do not like this answer, do I have to eat it?\n\n{retold}"))
        talk.ask(user("What is odd here?\n\nUser: I eat figs.\nAssistant: Good."))
        assert len(said()) == 3

    def test_what_was_said_in_quotation_marks(self, talk: Talk) -> None:
        talk.ask(user("I eat herring."), answer="Good.")
        talk.ask(system("You give titles."), user('A title for: "I eat herring."'), answer="Herring")
        assert (Session.objects.count(), said()) == (1, ["I eat herring."])
        # The positive control: a person may quote what they said to nobody.
        talk.ask(system("You give titles."), user('A title for: "I eat figs."'), answer="Figs")
        assert said() == ["I eat herring.", 'A title for: "I eat figs."']

    def test_labels_that_come_again_are_nobodys(self, talk: Talk) -> None:
        texts = [
            "New task:\nI row.",
            "Observation:\nDone it.\nNew task:\nI ski in winter.",
            "Observation:\nSeen it.\nNew task:\nI sail in summer.",
        ]
        history: list[dict[str, Any]] = []
        for text, answer in zip(texts, ("Done it.", "Seen it.", "Good."), strict=True):
            talk.ask(*history, user(text), answer=answer)
            history += [user(text), model(answer)]
        assert [turn.own_text.splitlines()[-1] for turn in Turn.objects.said().order_by("number")] == [
            "I row.",
            "I ski in winter.",
            "I sail in summer.",
        ]

    def test_a_long_order_around_a_conversation(self, talk: Talk) -> None:
        begun = (user("I row at dawn."), model("That is early."), user("And at dusk."), model("Twice a day."))
        talk.ask(begun[0], answer="That is early.")
        talk.ask(*begun[:3], answer="Twice a day.")
        lines = "\n".join(f'<said by="{one["role"]}">{one["content"]}</said>' for one in begun)
        order = "Keep what matters for what is to be done next, and leave out the rest. " * 5
        headers = talk.ask(user(f"{order}\n<all>\n{lines}\n</all>"), answer="Rows twice.")
        assert (headers["x-memory-kept"], said()) == ("no", ["I row at dawn.", "And at dusk."])
        # The positive control: a person who quotes an answer and says much about it.
        much = "I have thought about that, and it does not fit how I live, as I work at night. " * 5
        talk.ask(user(f"{much}\n<quote>\nTwice a day.\n</quote>"))
        assert Turn.objects.said().order_by("-session__created_at")[0].own_text == much.strip()

    def test_a_question_with_the_steps_since(self, talk: Talk) -> None:
        frame = "[[ ## question ## ]]\nI row. Where is the boathouse?\n\n[[ ## steps ## ]]\n{}\n\nFill in {}."
        talk.ask(user(frame.format("", "`thought` and whatever the form of this house asks for")), answer="Look it up.")
        headers = talk.ask(
            user(frame.format("Look it up.\nBy the lake.", "`answer`, and leave all the others out of it"))
        )
        assert (headers["x-memory-kept"], Turn.objects.said().get().own_text) == (
            "no",
            "I row. Where is the boathouse?",
        )
        # The positive control: another question in the same frame.
        other = frame.replace("I row. Where is the boathouse?", "I ski. Where is the hill?")
        talk.ask(user(other.format("", "`answer`")))
        assert Turn.objects.said().order_by("-session__created_at")[0].own_text == "I ski. Where is the hill?"

    def test_ones_own_words_beside_a_quotation_stay(self, talk: Talk) -> None:
        talk.ask(user("When does it leave?"), answer="The ferry leaves at nine.")
        text = "The ferry leaves at nine. That is too early for me, I get up at ten."
        talk.ask(user(text))
        turn = Turn.objects.get(content=text)
        assert (turn.author, turn.own_text) == ("person", "That is too early for me, I get up at ten.")

    def test_what_the_person_said_first_stays_theirs(self, talk: Talk) -> None:
        talk.ask(user("I get up at ten."), answer="I get up at ten. Understood.")
        talk.ask(user("I get up at ten."), model("I get up at ten. Understood."), user("I get up at ten."))
        assert said() == ["I get up at ten.", "I get up at ten."]

    def test_not_of_another_key(self, talk: Talk, client: Client, tenant: Tenant) -> None:
        talk.ask(user("Tell me of ferries."), answer="The ferry leaves at nine.")
        _, client.key = factories.api_key(tenant, scopes=["ingest", "read"])
        talk.ask(user("The ferry leaves at nine."))
        assert said() == ["Tell me of ferries.", "The ferry leaves at nine."]

    def test_nothing_is_noted_that_may_not_be_kept(self, talk: Talk) -> None:
        for mode in ("off", "read-only"):
            talk.ask(user("I row."), answer="Nice row.", headers={"mode": mode})
        assert not SeenText.objects.exists()
        talk.ask(user("I row."), answer="Nice row.")
        assert SeenText.objects.count() == 2
        EndUser.objects.update(capture=False)
        talk.ask(user("I ski."), answer="Nice ski.")
        assert SeenText.objects.count() == 2

    def test_they_are_forgotten_after_a_week(self, talk: Talk) -> None:
        talk.ask(user("I row."), answer="Nice row.")
        now = timezone.now()
        assert seen_texts.sweep(now) == 0
        assert seen_texts.sweep(now + timedelta(days=8)) == 2


class TestFrames:
    FRAME = "Task: {}\nAnswer in one line and in nothing else, as the manager of the office asks."

    def test_a_template_is_learned(self, talk: Talk) -> None:
        first, second = (
            self.FRAME.format(text) for text in ("I prefer trains. Plan a trip.", "I get seasick. Book it.")
        )
        talk.ask(user(first))
        # Until it is known, what is doubtful is not believed.
        assert Turn.objects.get(content=first).is_doubtful
        talk.ask(user(second))
        assert Turn.objects.get(content=second).own_text == "I get seasick. Book it."

    def test_the_last_slot_alone_is_the_persons(self, talk: Talk) -> None:
        frame = "Here is what our library holds on this matter today.\n{}\nNow answer what the reader asks.\n{}"
        talk.ask(user(frame.format("Ann writes: I have a dog.", "Who has a dog?")))
        text = frame.format("Ben writes: I have a cat.", "I am a vet. Who has a cat?")
        talk.ask(user(text))
        assert Turn.objects.get(content=text).own_text == "I am a vet. Who has a cat?"

    def test_other_texts_have_no_frame(self, talk: Talk) -> None:
        talk.ask(user("I have lived in Ghent for ten years and like it."))
        text = "I have lived in Bruges for ten years before that."
        talk.ask(user(text))
        assert Turn.objects.get(content=text).own is None


class TestPlaceAndName:
    def test_another_speaker(self, talk: Talk) -> None:
        talk.ask(user("Write a slogan.", name="user"), user("I am Sam, I write slogans.", name="writer"))
        assert (said(), author_of("I am Sam, I write slogans.")) == (["Write a slogan."], Author.OTHER)

    def test_the_persons_own_id_tells_who_is_who(self, talk: Talk) -> None:
        talk.ask(user("I am Sam.", name="sam"), model("Hi."), user("I am u1.", name="u1"))
        assert (said(), author_of("I am Sam.")) == (["I am u1."], Author.OTHER)

    def test_nobody_types_so_fast(self, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(authors, "HASTE", timedelta(seconds=120))
        talk.ask(user("List my boats."), answer="[broken")
        talk.ask(user("List my boats."), model("[broken"), user("Once more, the list did not end."))
        assert (said(), Session.objects.count()) == (["List my boats."], 1)
        # A conversation that begins meanwhile is another's haste.
        talk.ask(user("I row."))
        assert said() == ["List my boats.", "I row."]

    def test_nor_after_an_answer_that_the_instructions_tell(self, talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
        talk.ask(user("I row."), answer="A fine sport. Where?")
        order, told = (
            user("Write the minutes."),
            system("Minutes of <talk>person: I row.\nAI: A fine sport. Where?</talk>"),
        )
        monkeypatch.setattr(authors, "HASTE", timedelta(seconds=120))
        headers = talk.ask(told, order, answer="They row.")
        assert (headers["x-memory-kept"], said()) == ("no", ["I row."])
        # The positive control: who takes their time is a person.
        monkeypatch.setattr(authors, "HASTE", timedelta(0))
        talk.ask(told, order)
        assert said() == ["I row.", "Write the minutes."]


class TestWhatTheApplicationSays:
    MESSAGES = (user("Rules of the house: I whisper."), user("<note>\nI row.\n</note>"))

    def test_the_last_is_the_persons_whole(self, talk: Talk) -> None:
        talk.ask(*self.MESSAGES, headers={"said": "last"})
        assert said() == ["<note>\nI row.\n</note>"]
        assert Turn.objects.said().get().own is None

    @pytest.mark.parametrize("places", [(0, 1), (1, 0)])
    def test_of_its_parts_what_was_typed(self, talk: Talk, places: tuple[int, int]) -> None:
        texts = ["I row.", "<system-reminder>\nI ski.\n</system-reminder>"]
        talk.ask(user([{"type": "text", "text": texts[at]} for at in places]), headers={"said": "last"})
        assert said() == ["I row."]

    def test_none_is(self, talk: Talk) -> None:
        assert talk.ask(user("I row."), headers={"said": "none"})["x-memory-kept"] == "no"
        assert said() == []

    def test_another_word_is_refused(self, client: Client) -> None:
        answer = client.post({"model": "m", "messages": [user("I row.")]}, user="u1", said="first")
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_header")

    def test_memory_on_is_stronger_than_a_clients_default(self, talk: Talk) -> None:
        assert talk.ask(user("I row."), store=False)["x-memory-kept"] == "no"
        assert said() == []
        assert "x-memory-kept" not in talk.ask(user("I row."), store=False, headers={"mode": "on"})
        assert said() == ["I row."]


class TestNamesOnTheWire:
    @pytest.mark.parametrize(
        "name",
        ["x-claude-code-session-id", "x-session-id", "x-session-affinity", "session-id", "session_id", "thread-id"],
    )
    def test_a_header(self, client: Client, endpoint: Endpoint, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gateway, "KEEP_SECONDS", 0.1)
        for text in ("I row.", "I ski."):
            self._post(client, endpoint, {"messages": [user(text)]}, headers={name: "ses_1"})
        assert list(Session.objects.values_list("external_id", flat=True)) == ["ses_1"]
        assert said() == ["I row.", "I ski."]

    @pytest.mark.parametrize(
        "names", [{"prompt_cache_key": "ses_1"}, {"prompt_cache_key": "ses_1", "safety_identifier": "u1"}]
    )
    def test_the_body(self, client: Client, endpoint: Endpoint, names: dict[str, Any]) -> None:
        self._post(client, endpoint, {"messages": [user("I row.")], **names})
        assert list(Session.objects.values_list("external_id", "end_user__external_id")) == [("ses_1", "u1")]

    @staticmethod
    def _post(client: Client, endpoint: Endpoint, document: Any, headers: dict[str, str] | None = None) -> None:
        reply = {"id": "c1", "choices": [{"index": 0, "finish_reason": "stop", "message": model("Noted.")}]}
        endpoint.responds(sends(json.dumps(reply).encode()))
        client.others = headers or {}
        assert client.post({"model": "m", **document}, user="u1").status_code == 200
