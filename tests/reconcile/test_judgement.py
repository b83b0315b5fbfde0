"""One question for all candidates of a batch, and what stands when nobody answers it."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import LazySettings

from memories import conf, exceptions
from memories.exceptions import LeaseLost, ModelError
from memories.facts.candidate import Verdict
from memories.llm.prompts import fact_judgement
from memories.models.folding import text_digest
from memories.reconcile import judgement
from memories.reconcile.judgement import Judgements, Neighbour, Proposal
from tests.model import Model
from tests.reconcile.candidates import accepted
from tests.tables.nearness import OPPOSED, PARAPHRASES

TEA, COFFEE, CITY = "Likes tea", "Likes coffee", "Lives in Leiden"


def neighbour(content: str, *, refused: bool = False, **over: Any) -> Neighbour:
    given = {"category": "knowledge", "key": "", "binding": False, "similarity": 0.9, "refused": refused, **over}
    fact_id = uuid.uuid5(uuid.NAMESPACE_OID, content)
    return Neighbour(fact_id=fact_id, content_hash=text_digest(content), content=content, **given)


def proposal(index: int, content: str, *known: str) -> Proposal:
    return Proposal(accepted(content, index), [neighbour(text) for text in known])


def judge(*proposals: Proposal, before_call: Callable[[], None] = lambda: None, **over: Any) -> Judgements:
    given = {"max_calls": 3, "max_tokens": 8_000, **over}
    return judgement.judge(proposals=proposals, before_call=before_call, **given)


def verdicts(judged: Judgements) -> dict[int, list[Verdict]]:
    return {index: [near.verdict for near in some] for index, some in judged.near.items()}


def verdict(candidate: int, fact: int, said: str) -> dict[str, Any]:
    return {"candidate": candidate, "fact": fact, "verdict": said}


def test_one_question_for_all(model: Model) -> None:
    model.answers.append(
        {"judgements": [verdict(1, 1, "same"), verdict(1, 2, "unrelated"), verdict(2, 3, "contradicts")]}
    )
    judged = judge(proposal(4, "Enjoys tea", TEA, COFFEE), proposal(9, "Lives in Delft", CITY, TEA))
    assert verdicts(judged) == {
        4: [Verdict.SAME, Verdict.UNRELATED],
        9: [Verdict.CONTRADICTS, Verdict.UNRELATED],
    }
    assert (judged.prompt_version, judged.prompt_tokens, judged.completion_tokens) == (fact_judgement.VERSION, 70, 7)
    [near, _] = judged.near[9]
    assert (near.fact_id, near.content_hash) == (neighbour(CITY).fact_id, text_digest(CITY))
    assert model.prompts == [
        """\
<candidates>
<candidate n="1" category="knowledge" near="1,2">Enjoys tea</candidate>
<candidate n="2" category="knowledge" near="3,1">Lives in Delft</candidate>
</candidates>
<known_facts>
<fact n="1" category="knowledge" key="" binding="false">Likes tea</fact>
<fact n="2" category="knowledge" key="" binding="false">Likes coffee</fact>
<fact n="3" category="knowledge" key="" binding="false">Lives in Leiden</fact>
</known_facts>"""
    ]


def test_refused_facts_are_not_judged(model: Model) -> None:
    gone = neighbour(COFFEE, refused=True)
    judged = judge(Proposal(accepted("Enjoys coffee"), [gone]))
    assert (verdicts(judged), model.prompts) == ({0: [Verdict.NOT_JUDGED]}, [])
    model.answers.append({"judgements": [verdict(1, 1, "refines")]})
    judged = judge(Proposal(accepted("Enjoys coffee"), [gone, neighbour(TEA)]))
    assert verdicts(judged) == {0: [Verdict.NOT_JUDGED, Verdict.REFINES]}
    assert [near.refused for near in judged.near[0]] == [True, False]
    assert COFFEE not in model.prompts[0]


def test_nothing_proposed_costs_no_call(model: Model) -> None:
    assert (judge(), model.prompts) == (Judgements({}), [])


@pytest.mark.parametrize("mode", [conf.LLM_RULES, conf.LLM_OFF])
def test_without_a_model(model: Model, settings: LazySettings, mode: str) -> None:
    settings.MEMORYHUB_LLM = mode
    judged = judge(proposal(0, "Enjoys tea", TEA, COFFEE))
    assert verdicts(judged) == {0: [Verdict.NOT_JUDGED, Verdict.NOT_JUDGED]}
    assert (judged.prompt_version, judged.failure, model.prompts) == ("", None, [])


@pytest.mark.parametrize("left", [0, -1])
def test_without_a_call_left(model: Model, left: int) -> None:
    assert verdicts(judge(proposal(0, "Enjoys tea", TEA), max_calls=left)) == {0: [Verdict.NOT_JUDGED]}
    assert model.prompts == []


@pytest.mark.parametrize("error", ModelError.__subclasses__(), ids=lambda error: error.code)
def test_a_failing_model(model: Model, error: type[ModelError]) -> None:
    model.answers.append(error())
    judged = judge(proposal(0, "Enjoys tea", TEA))
    assert verdicts(judged) == {0: [Verdict.NOT_JUDGED]}
    assert isinstance(judged.failure, error)
    assert judged.prompt_version == ""


def test_an_answer_to_another_question(model: Model) -> None:
    model.say()
    judged = judge(proposal(0, "Enjoys tea", TEA))
    assert isinstance(judged.failure, exceptions.ModelAnswerInvalid)
    assert verdicts(judged) == {0: [Verdict.NOT_JUDGED]}


def test_a_lost_lease_passes(model: Model) -> None:
    def lost() -> None:
        raise LeaseLost

    with pytest.raises(LeaseLost):
        judge(proposal(0, "Enjoys tea", TEA), before_call=lost)


def test_a_model_that_ran_wild_does_not_make_the_question_huge(model: Model) -> None:
    model.answers.append({"judgements": [verdict(n, 1, "same") for n in range(1, 31)]})
    judged = judge(*(proposal(n, f"Enjoys tea number {n}", TEA) for n in range(30)), max_tokens=60)
    asked = len(re.findall("<candidate ", model.prompts[0]))
    assert 5 < asked < 20
    assert verdicts(judged) == {n: [Verdict.SAME if n < asked else Verdict.NOT_JUDGED] for n in range(30)}


def test_one_long_pair_is_asked_all_the_same(model: Model) -> None:
    judge(proposal(0, "Enjoys tea", "x " * 1_000), proposal(1, "Enjoys tea", TEA), max_tokens=10)
    assert model.prompts[0].count("<candidate ") == 1


@pytest.mark.parametrize("pair", OPPOSED[5::6] + PARAPHRASES[5::6], ids=lambda pair: pair[1])
def test_only_the_judge_tells_opposites_from_paraphrases(
    model: Model, settings: LazySettings, pair: tuple[str, str]
) -> None:
    """However near they lie, a verdict is the judge's own, and without one there is none."""
    known, said = pair
    near = Proposal(accepted(said), [neighbour(known, similarity=1.0)])
    for told in fact_judgement.VERDICTS:
        model.answers.append({"judgements": [verdict(1, 1, told)]})
        assert verdicts(judge(near)) == {0: [Verdict(told)]}
    model.answers.append({"judgements": []})
    assert verdicts(judge(near)) == {0: [Verdict.UNRELATED]}
    settings.MEMORYHUB_LLM = conf.LLM_RULES
    assert verdicts(judge(near)) == {0: [Verdict.NOT_JUDGED]}
