"""A question, from the search to the sentences that stay: with a model, without one, within its bounds."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from memories import conf
from memories.answering import answer as answering
from memories.answering.allowance import Allowance
from memories.answering.answer import Answer, AnswerRequest, AnswerStatus
from memories.curation.turns import redact_turn
from memories.exceptions import HubBusy, ModelTimeout, NoPrice
from memories.llm import client
from memories.llm.backends.scripted import outbox
from memories.llm.prompts import answer_plan
from memories.models import DailySpending, EndUser, LanguageModel, ModelUse, Turn
from memories.queue import own_models
from memories.retrieval.evidence import Level
from tests import factories
from tests.factories import NOW
from tests.vectors import embed_all

pytestmark = pytest.mark.django_db
QUESTION = "Where did I move to?"
Script = Callable[..., None]


@pytest.fixture
def person() -> EndUser:
    person = factories.end_user(external_id="u1")
    talk = [
        ("user", "I moved to Ghent in May."),
        ("assistant", "How nice!"),
        ("user", "My sister Ana plays the cello."),
    ]
    factories.session(person, talk, session_id="s1")
    embed_all(person)
    return person


@pytest.fixture
def script(settings: LazySettings, tmp_path: Path) -> Script:
    """A model that gives these sentences, and plans these searches."""

    def write(*sentences: tuple[str, list[int]], searches: Any = (), error: str = "") -> None:
        found = {"sentences": [{"text": text, "memories": cited} for text, cited in sentences]}
        said = {"error": error} if error else {"answer": found}
        lines = [{"name": "answer_plan", "answer": {"searches": list(searches)}}, {"name": "cited_answer", **said}]
        path = tmp_path / "script.json"
        path.write_text(json.dumps(lines), encoding="utf-8")
        settings.MEMORYHUB_LLM, settings.MEMORYHUB_LLM_SCRIPT = "scripted", str(path)
        outbox.clear()

    return write


def ask(person: EndUser, question: str = QUESTION, **over: Any) -> Answer:
    return answering.answer(tenant=person.tenant, request=AnswerRequest("u1", question, **over), now=NOW)


def place_of(found: Answer, words: str) -> int:
    return next(number for number, one in enumerate(found.evidence, start=1) if words in one.text)


def test_sentences_stay_if_their_memories_say_them(person: EndUser, script: Script) -> None:
    script(
        ("The user moved to Ghent in May.", [1]), ("The user moved to Bruges.", [1]), ("The user moved to Ghent.", [99])
    )
    found = ask(person)
    assert place_of(found, "Ghent") == 1
    assert [(one.text, list(one.memories)) for one in found.sentences] == [("The user moved to Ghent in May.", [1])]
    assert (found.status, found.cut, found.text) == (AnswerStatus.ANSWERED, 2, "The user moved to Ghent in May.")


def test_nothing_said_is_unknown(person: EndUser, script: Script) -> None:
    script(("The user moved to Bruges.", [1]))
    found = ask(person)
    assert (found.status, found.cut, found.calls) == (AnswerStatus.UNKNOWN, 1, 2)
    assert found.evidence


def test_without_evidence_the_model_is_asked_for_a_plan_alone(person: EndUser, script: Script) -> None:
    script(("The user moved to Ghent in May.", [1]))
    found = ask(person, "What is the boiling point of nitrogen?", searches=1)
    assert (found.status, found.evidence, found.calls, len(outbox)) == (AnswerStatus.UNKNOWN, [], 0, 0)


def test_what_is_found_by_chance_answers_nothing(person: EndUser, script: Script, settings: LazySettings) -> None:
    factories.session(person, [("user", "I can see the stars from my roof.")], session_id="s2")
    embed_all(person)
    script(("The user moved to Ghent in May.", [1]))
    question = "What is the largest moon of Saturn?"
    found = ask(person, question, searches=1)
    assert {one.evidence_level for one in found.evidence} <= {Level.WEAK}
    assert (found.status, found.calls) == (AnswerStatus.UNKNOWN, 0)
    settings.MEMORYHUB_LLM = "rules"
    assert ask(person, question).status == AnswerStatus.UNKNOWN


def test_planned_searches_find_what_the_question_does_not_name(person: EndUser, script: Script) -> None:
    question = "Which instrument is there in my family?"
    planned = {"query": "sister plays the cello", "kind": "turn", "since": "2020-01-01", "until": None, "as_of": None}
    script(("The user's sister Ana plays the cello.", [1]), searches=[planned, {"query": 7}, planned, planned])
    found = ask(person, question, searches=3)
    # Its own, and at most as many as are left; what cannot be read is passed over.
    assert [one.query for one in found.searches] == ["sister plays the cello"] * 2
    assert found.searches[0].kinds == ("turn",)
    assert found.searches[0].since
    assert found.searches[0].since.isoformat() == "2020-01-01T00:00:00+00:00"
    assert place_of(found, "cello")


def test_a_plan_sees_nothing_later_than_the_question_may(person: EndUser, script: Script) -> None:
    before = NOW.replace(year=NOW.year - 1)
    script(searches=[{"query": "Ghent", "kind": "any", "as_of": "2099-01-01"}])
    found = ask(person, as_of=before)
    assert [one.as_of for one in found.searches] == [before]
    assert (found.status, found.evidence) == (AnswerStatus.UNKNOWN, [])


@pytest.mark.parametrize("mode", ["rules", "off"])
def test_without_a_model_it_is_the_evidence(person: EndUser, settings: LazySettings, mode: str) -> None:
    settings.MEMORYHUB_LLM = mode
    found = ask(person)
    assert (found.status, found.failure, found.sentences) == (AnswerStatus.EVIDENCE, "no_model", ())
    assert place_of(found, "Ghent") == 1
    assert ask(person, "What is the boiling point of nitrogen?").status == AnswerStatus.UNKNOWN


def test_a_model_that_fails_leaves_the_evidence(person: EndUser, script: Script) -> None:
    script(error="model_timeout")
    found = ask(person)
    assert (found.status, found.failure) == (AnswerStatus.EVIDENCE, "model_timeout")
    assert place_of(found, "Ghent") == 1


def test_its_tokens_count_for_the_tenants_day(person: EndUser, script: Script) -> None:
    script(("The user moved to Ghent in May.", [1]))
    found = ask(person)
    used = found.prompt_tokens + found.completion_tokens
    assert DailySpending.objects.get(tenant=person.tenant).tokens == used > 0
    noted = ModelUse.objects.get(tenant=person.tenant, purpose="answers")
    assert (noted.calls, noted.prompt_tokens, noted.completion_tokens) == (
        2,
        found.prompt_tokens,
        found.completion_tokens,
    )
    LanguageModel.objects.create(tenant=person.tenant, daily_tokens=used, updated_at=NOW)
    capped = ask(person)
    assert (capped.status, capped.failure, capped.calls) == (AnswerStatus.EVIDENCE, "daily_cap", 0)


def test_what_may_be_read_and_written_is_bounded_before_each_call(
    person: EndUser, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = [("user", f"I moved to Ghent, to house {place}.") for place in range(60)]
    factories.session(person, talk, session_id="s2")
    embed_all(person)
    script(("The user moved to Ghent.", [1]))
    house = "To which house in Ghent did I move?"
    complete, used = client.complete, [0]
    evidence: list[int] = []

    def counted(**given: Any) -> Any:
        size = Allowance(conf.llm(), 0).size_of(given["messages"], given["answer"])
        # All that was used, this prompt, and the longest answer that is allowed.
        assert used[-1] + size + given["most_tokens"] <= most
        completion = complete(**given)
        used.append(used[-1] + size + completion.completion_tokens)
        evidence.append(given["messages"][-1]["content"].count("<memory "))
        return completion

    monkeypatch.setattr(client, "complete", counted)
    for most in (1_500, 2_500, 8_000):
        used[:] = [0]
        assert ask(person, house, max_tokens=most).status == AnswerStatus.ANSWERED
    # A larger bound has room for a plan, and for more memories.
    assert len(used) == 3
    told = [count for count in evidence if count]
    assert told[0] < told[-1]
    monkeypatch.setattr(client, "complete", complete)
    assert ask(person, house, max_tokens=500).failure == "no_room"


def test_the_cost_is_bounded_by_the_models_prices(
    person: EndUser, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(("The user moved to Ghent in May.", [1]))
    with pytest.raises(NoPrice):
        ask(person, max_cost=Decimal("0.01"))
    priced = replace(conf.llm(), prices=conf.Prices(Decimal(10), Decimal(30)))
    monkeypatch.setattr(own_models, "config_of", lambda _tenant: priced)
    enough = ask(person, max_cost=Decimal("0.05"))
    assert enough.status == AnswerStatus.ANSWERED
    assert enough.cost is not None
    assert 0 < enough.cost <= Decimal("0.05")
    little = ask(person, max_cost=Decimal("0.001"))
    assert (little.status, little.failure, little.calls) == (AnswerStatus.EVIDENCE, "no_room", 0)


def test_so_many_are_asked_at_a_time(person: EndUser, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    script(("The user moved to Ghent in May.", [1]))
    monkeypatch.setattr(answering, "_running", threading.BoundedSemaphore(1))
    complete = client.complete

    def nested(**given: Any) -> Any:
        with pytest.raises(HubBusy):
            ask(person)
        return complete(**given)

    monkeypatch.setattr(client, "complete", nested)
    assert ask(person).status == AnswerStatus.ANSWERED
    monkeypatch.setattr(client, "complete", complete)
    assert ask(person).status == AnswerStatus.ANSWERED


def test_nothing_of_who_may_not_be_served(person: EndUser, script: Script) -> None:
    script(("The user moved to Ghent in May.", [1]))
    assert ask(person).status == AnswerStatus.ANSWERED
    EndUser.objects.filter(pk=person.pk).update(serve=False)
    found = ask(person)
    assert (found.status, found.evidence, found.serve, found.calls) == (AnswerStatus.UNKNOWN, [], False, 0)
    EndUser.objects.filter(pk=person.pk).update(serve=True, restricted_at=NOW)
    assert ask(person).restricted


def test_a_long_question_is_asked_whole(person: EndUser, script: Script) -> None:
    script(("The user moved to Ghent in May.", [1]))
    assert ask(person, "Where did I move to? " * 90).status == AnswerStatus.ANSWERED


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York"])
def test_a_plan_names_no_day_outside_the_calendar(person: EndUser, script: Script, zone: str) -> None:
    EndUser.objects.filter(pk=person.pk).update(time_zone=zone)
    days = {"since": "0001-01-01", "until": "9999-12-31", "as_of": "9999-12-31"}
    script(("The user moved to Ghent in May.", [1]), searches=[{"query": "Ghent", "kind": "any", **days}])
    found = ask(person)
    assert found.status == AnswerStatus.ANSWERED
    assert [(one.since, one.until, one.as_of) for one in found.searches] == [(None, None, None)]


def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object], name: str = "cited_answer") -> None:
    """Have it happen while the model answers this call."""
    complete = client.complete

    def slow(**given: Any) -> Any:
        completion = complete(**given)
        if given["answer"].name == name:
            happens()
        return completion

    monkeypatch.setattr(client, "complete", slow)


def test_what_went_while_the_model_wrote_is_not_told(
    person: EndUser, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(("The user moved to Ghent in May.", [1]), ("The user moved to Ghent.", [1, 2]))
    factories.session(person, [("user", "I moved to Ghent.")], session_id="s2")
    embed_all(person)
    assert len(ask(person).sentences) == 2
    turn = Turn.objects.get(end_user=person, content__contains="in May")
    meanwhile(
        monkeypatch,
        lambda: redact_turn(turn_id=turn.pk, tenant=person.tenant, actor=factories.COMMAND, now=NOW),
    )
    found = ask(person)
    assert [one.text for one in found.sentences] == ["The user moved to Ghent."]
    assert all("in May" not in one.text for one in found.evidence)
    assert [found.evidence[number - 1].text for number in found.sentences[0].memories] == ["I moved to Ghent."]


@pytest.mark.parametrize(("during", "calls"), [("answer_plan", 1), ("cited_answer", 2)])
def test_nothing_of_who_was_restricted_meanwhile(
    person: EndUser, script: Script, monkeypatch: pytest.MonkeyPatch, during: str, calls: int
) -> None:
    script(("The user moved to Ghent in May.", [1]))
    assert ask(person).calls == 2
    meanwhile(monkeypatch, lambda: EndUser.objects.filter(pk=person.pk).update(restricted_at=NOW), during)
    found = ask(person)
    assert (found.status, found.evidence, list(found.sentences), found.restricted) == (
        AnswerStatus.UNKNOWN,
        [],
        [],
        True,
    )
    # Nor is a model told any more of them.
    assert found.calls == calls


def test_a_cap_that_the_plan_reaches_ends_it(person: EndUser, script: Script) -> None:
    script(("The user moved to Ghent in May.", [1]))
    LanguageModel.objects.create(tenant=person.tenant, daily_tokens=1, updated_at=NOW)
    found = ask(person)
    assert (found.status, found.failure, found.calls) == (AnswerStatus.EVIDENCE, "daily_cap", 1)


def test_an_endpoint_that_reports_nothing_has_used_all_of_it() -> None:
    config = replace(conf.llm(), prices=conf.Prices(Decimal(10), Decimal(30)))
    allowance = Allowance(config, 100_000, Decimal("0.05"))
    messages = answer_plan.build(question=QUESTION, today=NOW.date(), time_zone="UTC", most=2)
    before = allowance.room_for(messages, answer_plan.ANSWER)
    limit = allowance.ask(messages, answer_plan.ANSWER, most=600)
    allowance.add(0, 0)
    assert allowance.room_for(messages, answer_plan.ANSWER) <= before - limit


def test_all_calls_together_end_in_time(person: EndUser, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    script(("The user moved to Ghent in May.", [1]))
    clock = [0.0]
    monkeypatch.setattr(answering, "monotonic", lambda: clock[0])
    timeouts: list[float] = []
    complete = client.complete

    def slow(**given: Any) -> Any:
        timeouts.append(given["config"].timeout)
        completion = complete(**given)
        clock[0] += answering.SECONDS - 10
        # A form that is refused so late is not asked again in a simpler one.
        with pytest.raises(ModelTimeout):
            given["before_call"]()
        return completion

    monkeypatch.setattr(client, "complete", slow)
    assert ask(person).status == AnswerStatus.ANSWERED
    assert timeouts == [min(conf.llm().timeout, answering.SECONDS), 10]


def test_a_sentence_is_told_once_and_as_it_is_seen(person: EndUser, script: Script) -> None:
    script(("\u202eThe user moved\u200b to\nGhent in May.", [1]), ("The user moved to Ghent in May.", [1]))
    found = ask(person)
    assert [one.text for one in found.sentences] == ["The user moved to Ghent in May."]
    assert found.cut == 0


@pytest.mark.parametrize("plan", ["{", '{"searches": ['])
def test_a_plan_that_cannot_be_read_is_done_without(
    person: EndUser, settings: LazySettings, tmp_path: Path, plan: str
) -> None:
    said = {"sentences": [{"text": "The user moved to Ghent in May.", "memories": [1]}]}
    lines = [{"name": "answer_plan", "raw": plan}, {"name": "cited_answer", "answer": said}]
    path = tmp_path / "script.json"
    path.write_text(json.dumps(lines), encoding="utf-8")
    settings.MEMORYHUB_LLM, settings.MEMORYHUB_LLM_SCRIPT = "scripted", str(path)
    found = ask(person)
    assert (found.status, found.calls, list(found.searches)) == (AnswerStatus.ANSWERED, 2, [])
