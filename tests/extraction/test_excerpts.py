"""Long messages: what stands in their middle reaches the model, what matters first, and what does not is counted."""

from typing import Any

import pytest

from memories.exceptions import ModelAnswerTruncated
from memories.extraction import consolidation, excerpts
from memories.extraction.excerpts import excerpt
from memories.llm import tokens
from memories.llm.prompts.framing import TRUNCATED, shorten
from memories.models import EndUser, ExtractionRun, Fact, Session, SessionQueue
from tests import factories
from tests.each import each
from tests.factories import NOW
from tests.model import Model, candidate

FILL = "The quarterly figures of the north office look stable and the team keeps its usual pace. "
SAID = "I am allergic to penicillin."


def long(times: int, said: str = SAID) -> str:
    return f"{FILL * times}{said} {FILL * times}"


class TestExcerpt:
    @each("times", [0, 2, 20])
    def test_what_fits_is_shown_whole(self, times: int) -> None:
        text = long(times)
        assert excerpt(text, 6_000) == excerpts.Excerpt(text)

    @each(
        "said",
        [
            SAID,
            "My sister lives in Ghent.",
            "We moved to Delft.",
            "我对青霉素过敏。",
            "Ich bin gegen Penicillin allergisch.",
            "J'habite à Lyon.",
            "Soy alérgica a la penicilina.",
            "私はペニシリンにアレルギーがあります。",
            "Please use tabs instead.",
        ],
    )
    @each("at", [0.1, 0.5, 0.9])
    def test_what_people_say_of_themselves_comes_first(self, said: str, at: float) -> None:
        before = int(400 * at)
        text = FILL * before + said + " " + FILL * (400 - before)
        found = excerpt(text, 1_000)
        assert said in found.text
        # The control: as little of the others.
        other = text.replace(said, "The office of Ghent is small.")
        assert ("The office of Ghent is small." in excerpt(other, 1_000).text) == (at == 0.1)

    @each("budget", [0, 250, 400, 1_000, 5_000])
    def test_it_keeps_both_ends_and_the_budget_and_counts_the_rest(self, budget: int) -> None:
        text = "".join(f"Sentence number {number} of I and many. " for number in range(2_000))
        found = excerpt(text, budget)
        head, _, tail = shorten(text).partition(TRUNCATED)
        assert found.text.startswith(head)
        assert found.text.endswith(tail)
        assert tokens.count(found.text) <= max(budget, tokens.count(shorten(text)))
        assert len(text) - found.left_out == len(found.text.replace(TRUNCATED, ""))
        assert found.left_out > 0

    @each("text", ["x" * 50_000, "\n" * 50_000, "我" * 50_000, "I " * 50_000, "\u0301" * 50_000])
    def test_texts_without_sentences(self, text: str) -> None:
        found = excerpt(text, 500)
        assert len(text) - found.left_out == len(found.text.replace(TRUNCATED, ""))
        assert tokens.count(found.text) <= 1_500

    def test_a_text_that_has_the_mark_itself(self) -> None:
        text = long(200, TRUNCATED + SAID)
        assert SAID in excerpt(text, 1_000).text


def run_of(session: Session) -> ExtractionRun:
    run = consolidation.consolidate(session_id=session.pk, now=NOW)
    assert run
    return run


class TestBatch:
    @pytest.mark.parametrize("times", [6, 12, 60, 400, 2_000])
    def test_the_middle_of_a_message_becomes_a_fact(self, person: EndUser, model: Model, times: int) -> None:
        session = factories.session(person, [("user", long(times)), ("assistant", "Noted")], flush=True)
        model.say(candidate("Allergic to penicillin", evidence=[1], quote=SAID))
        run = run_of(session)
        assert model.prompts[0].count(SAID) == 1
        (fact,) = Fact.objects.all()
        assert (fact.status, fact.trust) == ("active", "user")
        is_cut = times >= 400
        assert (run.outcome.get("shortened", 0), run.outcome.get("left_out", 0) > 0) == (int(is_cut), is_cut)
        # The reply has its room.
        assert ">Noted</turn>" in model.prompts[0]

    def test_what_the_model_was_not_shown_supports_nothing(self, person: EndUser, model: Model) -> None:
        hidden = "The office has 4711 chairs."
        session = factories.session(person, [("user", long(1_000, hidden))], flush=True)
        model.say(candidate("Office has 4711 chairs", evidence=[1], quote=hidden))
        run_of(session)
        assert hidden not in model.prompts[0]
        assert Fact.objects.get().status == "pending"

    def test_long_messages_are_read_one_after_the_other(self, person: EndUser, model: Model) -> None:
        said = [("user", long(150, f"I own {number} bicycles.")) for number in range(3)]
        session = factories.session(person, said, flush=True)
        for _ in said:
            run_of(session)
            SessionQueue.objects.filter(pk=session.pk).update(due_at=NOW)
        assert len(model.prompts) == 3
        for number, prompt in enumerate(model.prompts):
            assert f"I own {number} bicycles." in prompt

    def test_a_long_message_alone_is_cut_to_length_where_it_is_too_long(self, person: EndUser, model: Model) -> None:
        session = factories.session(person, [("user", long(60))], flush=True)
        model.answers += [ModelAnswerTruncated(), ModelAnswerTruncated()]
        assert run_of(session).status == "failed"
        assert SessionQueue.objects.get(pk=session.pk).batch_limit == 1
        SessionQueue.objects.filter(pk=session.pk).update(due_at=NOW)
        assert run_of(session).status == "parked"
        long_prompt, short = model.prompts
        assert SAID in long_prompt
        assert SAID not in short
        assert len(short) < len(long_prompt) - 9_000

    def test_what_is_cut_to_length_is_counted(self, person: EndUser, model: Model) -> None:
        session = factories.session(person, [("user", long(60))], flush=True)
        model.answers.append(ModelAnswerTruncated())
        run_of(session)
        SessionQueue.objects.filter(pk=session.pk).update(due_at=NOW)
        run = run_of(session)
        assert run.status == "committed"
        assert run.outcome == {"shortened": 1, "left_out": len(long(60)) - 1_000}

    @pytest.mark.parametrize("said", ["Short.", long(5)])
    def test_nothing_is_counted_where_nothing_is_left_out(self, person: EndUser, model: Model, said: str) -> None:
        run = run_of(factories.session(person, [("user", said), ("assistant", long(20))], flush=True))
        assert not {"shortened", "left_out"} & run.outcome.keys()


def test_a_huge_message_is_counted_roughly(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    count = tokens.count

    def noted(text: str, *rest: Any) -> int:
        counted.append(len(text))
        return count(text, *rest)

    monkeypatch.setattr(tokens, "count", noted)
    excerpt("I like tea. " * 80_000, 1_000)
    assert sum(counted) < 20_000
