"""Whole attempts in which candidates meet facts that lie near them: calls, costs, failures, and who loses the lease."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.db.models.functions import Now

from memories import conf, exceptions
from memories.exceptions import ModelError
from memories.extraction import consolidation
from memories.facts.candidate import Verdict
from memories.llm import embeddings
from memories.llm.prompts import fact_judgement
from memories.models import EndpointState, EndUser, ExtractionRun, Fact, Session, SessionQueue
from memories.queue import session_queue
from memories.reconcile import reconcile
from memories.reconcile.changes import Outcome
from memories.reconcile.judgement import Verdicts
from tests import factories, vectors
from tests.factories import NOW
from tests.model import Model, candidate

pytestmark = pytest.mark.django_db
PATIENCE = 10.0
TEA = "Likes green tea"
KNOWN = [f"{TEA} cold", f"{TEA} daily", "Lives in Leiden"]


@pytest.fixture
def person() -> EndUser:
    person = factories.end_user()
    for content in KNOWN:
        factories.fact(person, content)
    vectors.embed_all(person, vectors.space(embeddings.HASHED, 16))
    return person


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Verdicts]:
    """What reconcile was told of neighbours, commit by commit."""
    told: list[Verdicts] = []
    apply = reconcile.apply

    def listening(*, near: Verdicts, **rest: Any) -> Outcome:
        assert connection.in_atomic_block
        told.append(near)
        return apply(near=near, **rest)

    monkeypatch.setattr(reconcile, "apply", listening)
    return told


def due(person: EndUser, text: str = "I like green tea") -> Session:
    return factories.session(person, [("user", text), ("assistant", "Noted")], flush=True)


def consolidate(session: Session) -> ExtractionRun:
    run = consolidation.consolidate(session_id=session.pk, now=NOW)
    assert run
    return run


def judgements(*verdicts: str) -> dict[str, Any]:
    """Of candidate 1 and facts 1, 2, …"""
    items = [{"candidate": 1, "fact": fact, "verdict": verdict} for fact, verdict in enumerate(verdicts, start=1)]
    return {"judgements": items}


def flat(near: Verdicts) -> dict[int, list[Verdict]]:
    return {index: [one.verdict for one in some] for index, some in near.items()}


def rows() -> list[Any]:
    """Everything that a merge, a refusal or a supersession would change of the known facts."""
    return list(Fact.objects.filter(content__in=KNOWN).order_by("content").values())


def test_one_question_for_all_candidates(model: Model, person: EndUser, given: list[Verdicts]) -> None:
    model.say(candidate("Plays chess"), candidate(TEA), candidate("Works in Leiden"))
    model.answers.append(judgements("unrelated", "unrelated"))
    run = consolidate(due(person))
    run.refresh_from_db()
    assert len(model.prompts) == 2
    assert model.prompts[1].splitlines()[:4] == [
        "<candidates>",
        f'<candidate n="1" category="knowledge" near="1,2">{TEA}</candidate>',
        '<candidate n="2" category="knowledge" near="3">Works in Leiden</candidate>',
        "</candidates>",
    ]
    assert [flat(near) for near in given] == [{1: [Verdict.UNRELATED] * 2, 2: [Verdict.UNRELATED]}]
    assert (run.status, run.calls, run.prompt_tokens, run.completion_tokens) == ("committed", 2, 140, 14)
    assert run.prompt_version.endswith(f"+{fact_judgement.VERSION}")
    assert run.outcome["stored"] == 3


def test_verdicts_arrive(model: Model, person: EndUser, given: list[Verdicts]) -> None:
    model.say(candidate(TEA))
    model.answers.append(judgements("same", "contradicts"))
    consolidate(due(person))
    facts = {fact.pk: fact.content for fact in Fact.objects.all()}
    [near] = given[0].values()
    assert [(facts[one.fact_id], one.verdict) for one in near] == [
        (KNOWN[0], Verdict.SAME),
        (KNOWN[1], Verdict.CONTRADICTS),
    ]


def test_nothing_near_costs_no_call(model: Model, person: EndUser, given: list[Verdicts]) -> None:
    model.say(candidate("Plays chess"), candidate(KNOWN[0]))
    run = consolidate(due(person))
    assert (run.calls, len(model.prompts), given) == (1, 1, [{}])
    assert "+" not in run.prompt_version


def test_no_transaction_is_open_and_the_lease_is_renewed(model: Model, person: EndUser) -> None:
    session = due(person)
    fresh = SessionQueue.objects.filter(pk=session.pk, lease_until__gt=Now() + timedelta(seconds=60))
    depth = len(connection.savepoint_ids)

    def look() -> dict[str, Any]:
        assert len(connection.savepoint_ids) == depth
        assert fresh.exists()
        return judgements()

    def forget_the_lease() -> dict[str, Any]:
        SessionQueue.objects.filter(pk=session.pk).update(lease_until=Now() + timedelta(seconds=1))
        assert not fresh.exists()
        return {"new_facts": [candidate(TEA)]}

    model.answers += [forget_the_lease, look]
    assert consolidate(session).status == "committed"
    assert len(model.prompts) == 2


@pytest.mark.parametrize("error", [exceptions.ModelUnavailable, exceptions.ModelRefused])
def test_a_judge_that_fails_loses_no_batch_and_decides_nothing(
    model: Model, person: EndUser, given: list[Verdicts], error: type[ModelError]
) -> None:
    before = rows()
    model.say(candidate(TEA))
    model.answers.append(error())
    session = due(person)
    run = consolidate(session)
    assert (run.status, run.calls, run.prompt_tokens, run.failure) == ("committed", 2, 70, "")
    assert [flat(near) for near in given] == [{0: [Verdict.NOT_JUDGED] * 2}]
    assert SessionQueue.objects.get(pk=session.pk).extracted_number == 2
    assert Fact.objects.get(content=TEA).status == "active"
    assert rows() == before


def test_an_endpoint_that_says_wait_is_heard(model: Model, person: EndUser) -> None:
    model.say(candidate(TEA))
    model.answers.append(exceptions.ModelRateLimited(retry_after=100))
    consolidate(due(person))
    assert EndpointState.objects.filter(stated_until__gt=Now() + timedelta(seconds=90)).exists()


def test_a_refusal_says_nothing_of_the_endpoint(model: Model, person: EndUser) -> None:
    model.say(candidate(TEA))
    model.answers.append(exceptions.ModelRefused())
    consolidate(due(person))
    assert not EndpointState.objects.exclude(failures=0).exists()


def test_at_most_four_calls(model: Model, person: EndUser, given: list[Verdicts]) -> None:
    """The forms of the request that an endpoint refused count as well."""

    def asked(again: int, answer: dict[str, Any]) -> Callable[[], dict[str, Any]]:
        def give() -> dict[str, Any]:
            for _ in range(again):
                model.call_again()
            return answer

        return give

    found = {"new_facts": [candidate(TEA)]}
    model.answers += [asked(2, found), judgements("same")]
    assert consolidate(due(person)).calls == 4
    assert flat(given[0]) == {0: [Verdict.SAME, Verdict.UNRELATED]}
    Fact.objects.filter(content=TEA).delete()
    model.answers = [asked(3, found), judgements("same")]
    assert consolidate(due(person)).calls == 4
    assert flat(given[1]) == {0: [Verdict.NOT_JUDGED] * 2}
    assert len(model.prompts) == 3


def test_without_a_model_pairs_are_proposed_and_not_judged(
    model: Model, person: EndUser, given: list[Verdicts], settings: LazySettings
) -> None:
    settings.MEMORYHUB_LLM = conf.LLM_RULES
    factories.fact(person, "I like green tea cold")
    vectors.embed_all(person, vectors.space(embeddings.HASHED, 16))
    before = rows()
    run = consolidate(due(person, "Please remember that I like green tea."))
    assert (run.status, run.calls, run.prompt_version, model.prompts) == ("committed", 0, "rules-v1", [])
    [near] = given[0].values()
    assert {one.verdict for one in near} == {Verdict.NOT_JUDGED}
    assert rows() == before


def test_an_embedding_that_fails_costs_the_batch_nothing(
    model: Model, person: EndUser, given: list[Verdicts], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise exceptions.EmbeddingUnavailable

    monkeypatch.setattr(embeddings, "embed", failing)
    model.say(candidate(TEA))
    assert consolidate(due(person)).status == "committed"
    assert given == [{}]


def test_a_lease_lost_before_the_question_is_not_asked(model: Model, person: EndUser) -> None:
    session = due(person)

    def too_late() -> dict[str, Any]:
        SessionQueue.objects.filter(pk=session.pk).update(lease_until=Now() - timedelta(seconds=1))
        assert session_queue.claim(session.pk)
        return {"new_facts": [candidate(TEA)]}

    model.answers.append(too_late)
    run = consolidate(session)
    assert (run.status, run.failure, len(model.prompts)) == ("discarded", "lease_lost", 1)
