"""The dialogues are enough, sound, and not those of the prompt."""

import re
from collections import Counter

from evals.extraction.corpus import FILES, KINDS, Dialogue, chosen, dialogues
from evals.extraction.matching import Label
from evals.extraction.measure import evidence_of, messages_of
from memories.llm.prompts.memory_update_text import INSTRUCTIONS, is_example
from memories.models.folding import fold
from memories.text import signals
from memories.text.secrets.redaction import redact_text
from tests.each import each

ALL = [dialogue for language in FILES for dialogue in dialogues(language)]
PROMPT = fold(INSTRUCTIONS)
# So many words, or Chinese characters, in a row are no accident.
WORDS, CHARACTERS = 6, 8


def runs(text: str) -> set[str]:
    """Every stretch of six words and of eight Chinese characters."""
    words = fold(text).split()
    han = re.findall(r"[\u3400-\u9fff]+", text)
    return {" ".join(words[place : place + WORDS]) for place in range(len(words) - WORDS + 1)} | {
        part[place : place + CHARACTERS] for part in han for place in range(len(part) - CHARACTERS + 1)
    }


def labels(dialogue: Dialogue) -> list[Label]:
    return [*dialogue.expect, *dialogue.may, *dialogue.forbid]


@each("language", FILES)
def test_there_are_enough_of_each_kind(language: str) -> None:
    kinds = Counter(dialogue.kind for dialogue in dialogues(language))
    assert kinds.total() >= 40
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) >= 3
    assert {dialogue.language for dialogue in dialogues(language)} == {language}
    # Otherwise a model that says nothing would look good.
    assert sum(bool(dialogue.expect) for dialogue in dialogues(language)) >= 25


def test_some_of_each_kind_can_be_chosen() -> None:
    some = [one.id for one in chosen(["zh", "en"], ["upload", "negation"], 1)]
    assert some == ["zh-upload-1", "zh-negation-1", "en-upload-1", "en-negation-1"]
    assert len(chosen(FILES, KINDS, None)) == len(ALL)


def test_no_two_are_the_same() -> None:
    assert len({dialogue.id for dialogue in ALL}) == len(ALL)
    assert len({tuple(dialogue.turns) for dialogue in ALL}) == len(ALL)


@each("dialogue", ALL)
def test_a_dialogue_is_sound(dialogue: Dialogue) -> None:
    assert 2 <= len(dialogue.turns) <= 8
    assert {role for role, _ in dialogue.turns} <= {"user", "assistant", "tool"}
    assert all(words.strip() for _, words in dialogue.turns)
    assert dialogue.outdated <= {fact.number for fact in dialogue.existing}
    assert all(label.categories for label in dialogue.expect)
    assert all(group and all(group) for label in labels(dialogue) for group in label.all)
    # It is one side of the conversation at least that the model sees.
    assert any(turn.is_user for turn in evidence_of(dialogue).fed.values())


def test_nothing_of_them_is_in_the_prompt() -> None:
    shared = {run for dialogue in ALL for _, words in dialogue.turns for run in runs(words) if run in PROMPT}
    assert shared == set()
    assert not any(is_example(words) for dialogue in ALL for _, words in dialogue.turns)
    # The guard can tell.
    assert any(
        run in PROMPT
        for run in runs("so: If I lived in a fact is the value of a lasting attribute with one value at a time")
    )
    assert any(run in PROMPT for run in runs("他说下周三之前我都在那里，我说过一律用箬程。"))


def test_secrets_are_false_and_cut_before_the_model_sees_them() -> None:
    secret = [dialogue for dialogue in ALL if dialogue.secrets]
    assert len(secret) >= 6
    for dialogue in secret:
        said = " ".join(words for _, words in dialogue.turns)
        shown = str(messages_of(dialogue, evidence_of(dialogue)))
        for one in dialogue.secrets:
            assert one in said
            assert one not in shown
            assert re.search("notreal|n0t-a-real|f4ke|jiade|bushi-zhende", one, re.IGNORECASE)


def test_other_dialogues_hold_no_secret() -> None:
    texts = [words for dialogue in ALL if not dialogue.secrets for _, words in dialogue.turns]
    assert [text for text in texts if redact_text(text)[1]] == []


def test_the_signs_of_a_batch_are_told() -> None:
    [dialogue] = [one for one in ALL if one.id == "en-correction-3"]
    assert "correction" in signals.find([words for role, words in dialogue.turns if role == "user"])
    assert "Signals found in the turns: correction" in messages_of(dialogue, evidence_of(dialogue))[-1]["content"]
