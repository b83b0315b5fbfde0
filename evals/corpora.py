"""Reads the evaluation sets as the published retrieval_eval does: units in order, questions with their gold.

Every set is cut in the same way each time, so figures can be compared between versions.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
PREFEVAL_STORES, PREFEVAL_FILLER = 10, 200
MEMDAILY_PER_FILE, MEMDAILY_GROUP = 30, 25


@dataclass(frozen=True)
class Unit:
    """One turn."""

    id: str
    session: str
    text: str
    at: datetime


@dataclass(frozen=True)
class Question:
    """What is asked, and the ids of the units (or sessions) that answer it."""

    text: str
    category: str
    gold: frozenset[str]


@dataclass(frozen=True)
class Corpus:
    """One person's store with its questions; `kind`: what is ranked, turn or session."""

    id: str
    kind: str
    units: list[Unit]
    questions: list[Question]


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _locomo_time(text: str | None) -> datetime:
    match = re.match(r"(\d+):(\d+) (am|pm) on (\d+) (\w+), (\d+)", text or "")
    if not match:
        return datetime(2023, 1, 1, tzinfo=UTC)
    hour = int(match[1]) % 12 + (12 if match[3] == "pm" else 0)
    day = datetime.strptime(f"{match[4]} {match[5]} {match[6]}", "%d %B %Y").replace(tzinfo=UTC)
    return day.replace(hour=hour, minute=int(match[2]))


def _locomo_units(talk: dict[str, Any], kind: str) -> Iterator[Unit]:
    n = 1
    while f"session_{n}" in talk or f"session_{n}_date_time" in talk:
        start = _locomo_time(talk.get(f"session_{n}_date_time"))
        for i, message in enumerate(talk.get(f"session_{n}", [])):
            text = f'{message["speaker"]} said, "{message["text"]}"'
            if message.get("blip_caption") and kind == "turn":
                text += f" [shared image: {message['blip_caption']}]"
            yield Unit(message["dia_id"], f"S{n}", text, start + timedelta(seconds=30 * i))
        n += 1


def _locomo_question(asked: dict[str, Any], have: set[str], kind: str) -> Question:
    named = [re.findall(r"D:?(\d+):(\d+)", evidence) for evidence in asked.get("evidence", [])]
    gold = {f"D{session}:{int(turn)}" for pairs in named for session, turn in pairs}
    gold = gold & have if kind == "turn" else {"S" + one[1:].split(":")[0] for one in gold}
    return Question(asked["question"], LOCOMO_CATEGORIES[asked["category"]], frozenset(gold))


def locomo(data: Path, kind: str) -> Iterator[Corpus]:
    """LoCoMo: long talks between two people."""
    for path in sorted((data / "locomo").glob("*.json")):
        for talk in _load(path):
            units = list(_locomo_units(talk["conversation"], kind))
            have = {unit.id for unit in units}
            questions = [_locomo_question(asked, have, kind) for asked in talk["qa"]]
            yield Corpus(f"locomo-{talk['sample_id']}", kind, units, questions)


def prefeval(data: Path) -> Iterator[Corpus]:
    """PrefEval: one preference for each topic among filler, asked for by a task that never names it."""
    files = sorted((data / "prefeval" / "explicit_preference").glob("*.json"))
    topics = [_load(path) for path in files]
    talks = _load(data / "prefeval" / "filtered_inter_turns.json")
    message = (one["content"][:1500] for talk in talks for one in talk["conversation"] if one["role"] == "user")
    filler = list(dict.fromkeys(message))
    day, size = datetime(2025, 1, 1, tzinfo=UTC), min(PREFEVAL_FILLER, len(filler))
    for store in range(min(PREFEVAL_STORES, *map(len, topics))):
        named = [(f"pref:{path.stem}", topic[store]) for path, topic in zip(files, topics, strict=True)]
        units = [Unit(name, "s1", one["preference"], day) for name, one in named]
        for j in range(size):
            text = filler[(store * PREFEVAL_FILLER + j) % len(filler)]
            units.append(Unit(f"fill:{j}", "s2", text, day + timedelta(minutes=j)))
        questions = [Question(one["question"], "preference", frozenset({name})) for name, one in named]
        yield Corpus(f"prefeval-{store}", "turn", units, questions)


def _integers(value: Any) -> set[int]:
    if isinstance(value, int):
        return {value}
    if isinstance(value, str):
        return {int(value)} if value.isdigit() else set()
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return set().union(*map(_integers, inner))


def _stories(data: Path) -> list[tuple[str, str, dict[str, Any]]]:
    folder = data / "memdaily_zh"
    files = sorted([*folder.glob("*_hybrid.json"), *folder.glob("*_roles.json")])
    return [
        (f"{path.name}-{story['tid']}", path.name[3:].rsplit("_", 1)[0], story)
        for path in files
        for story in _load(path)[:MEMDAILY_PER_FILE]
    ]


def memdaily(data: Path) -> Iterator[Corpus]:
    """MemDaily: Chinese notes of everyday life, 25 stories in one store."""
    stories = _stories(data)
    for first in range(0, len(stories), MEMDAILY_GROUP):
        units, questions = [], []
        clock = datetime(2024, 4, 1, tzinfo=UTC)
        for name, category, story in stories[first : first + MEMDAILY_GROUP]:
            ids = {str(message["mid"]) for message in story["message_list"]}
            for message in story["message_list"]:
                clock += timedelta(minutes=1)
                units.append(Unit(f"{name}/{message['mid']}", name, message["message"], clock))
            for asked in story["question_list"]:
                gold = {str(one) for one in _integers(asked["target_step_id"])} & ids
                questions.append(Question(asked["question"], category, frozenset(f"{name}/{one}" for one in gold)))
        yield Corpus(f"memdaily-{first}", "turn", units, questions)


def _beam_units(folder: Path) -> Iterator[Unit]:
    clock = datetime(2025, 1, 1, tzinfo=UTC)
    for batch in _load(folder / "chat.json"):
        for message in (one for turn in batch["turns"] for one in turn):
            clock += timedelta(minutes=1)
            text = message["content"]
            if message["role"] == "user":
                text = re.sub(r"\s*->->.*$", "", text, flags=re.DOTALL)
            yield Unit(str(message["id"]), f"b{batch.get('batch_number', 0)}", text, clock)


def beam(data: Path) -> Iterator[Corpus]:
    """BEAM of 100,000 tokens: long chats with an assistant, probed by ten abilities."""
    folders = (path for path in (data / "beam" / "100K").iterdir() if path.is_dir())
    for folder in sorted(folders, key=lambda path: int(path.name)):
        units = list(_beam_units(folder))
        have = {unit.id for unit in units}
        questions = [
            Question(one["question"], ability, frozenset(map(str, _integers(one.get("source_chat_ids", [])))) & have)
            for ability, asked in _load(folder / "probing_questions.json").items()
            for one in asked
        ]
        yield Corpus(f"beam-{folder.name}", "turn", units, questions)


SETS: dict[str, Callable[[Path], Iterator[Corpus]]] = {
    "locomo-turn": lambda data: locomo(data, "turn"),
    "locomo-session": lambda data: locomo(data, "session"),
    "prefeval": prefeval,
    "memdaily": memdaily,
    "beam-100k": beam,
}
