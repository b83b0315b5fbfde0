"""What a file of an import holds: split in its bytes as JSON would read it, and measured before anything is built."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from memories.api import parsers, shapes
from memories.api.v1.memory.serializers import MemoryQuery
from memories.imports import raw_documents
from memories.imports.raw_documents import RefusedDocumentError, checked, documents_in, lines_in, list_in
from tests.each import each

WORDS = ["", "a", 'quote " and', "back\\slash", '\\"', "[{,:}]", "中文", "\n\t", "\\u005b"]


def anything(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(6 if depth < 4 else 4)
    if kind == 4:
        return [anything(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == 5:
        return {f"{chance.choice(WORDS)}{at}": anything(chance, depth + 1) for at in range(chance.randrange(4))}
    return [chance.choice(WORDS), chance.randrange(1000), None, 1.5][kind]


@pytest.mark.parametrize("chunk", [7, 1024 * 1024])
def test_a_list_is_split_as_json_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(raw_documents, "_CHUNK", chunk)
    chance, path = random.Random(3), tmp_path / "file.json"
    for indent in (None, 2):
        for ascii_only in (True, False):
            for _ in range(60):
                members = [anything(chance) for _ in range(chance.randrange(5))]
                path.write_text(json.dumps(members, indent=indent, ensure_ascii=ascii_only))
                expected = [one if isinstance(one, dict) else {} for one in members]
                assert list(list_in(path)) == expected
                path.write_text(json.dumps({"x": 1, "items": members}, indent=indent, ensure_ascii=ascii_only))
                assert list(documents_in(path, Counter(), lists=("results", "items"))) == expected


def test_lines_and_an_object_alone(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": "x\\ny"}\r\n\r\n{"b": [1, 2]}\n[3]\n')
    assert list(lines_in(path)) == list(documents_in(path, Counter(), lists=())) == [{"a": "x\ny"}, {"b": [1, 2]}, {}]
    path.write_text(json.dumps({"a": {"b": 1}}, indent=1))
    assert list(documents_in(path, Counter(), lists=("items",))) == [{"a": {"b": 1}}]


@pytest.mark.parametrize("content", ["[1, 2", '["x]', "[1]]", "[1] x", "7", '"a"', "{}"])
def test_what_is_no_list_is_refused_before_anything_is_taken(tmp_path: Path, content: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="it h"):
        list_in(path)


def test_what_is_too_much_is_refused_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    path = tmp_path / "file.json"
    deep = "[" * (parsers.MAX_DEPTH + 1) + "]" * (parsers.MAX_DEPTH + 1)
    deeper = "[" * 100_000 + "]" * 100_000
    many = f"[{','.join('1' * 120)}]"
    path.write_text(f'[{{"a": {deep}}}, {{"a": {many}}}, {{"a": {deeper}}}, {{"a": "{"x" * 500}"}}, {{"a": 1}}]')
    monkeypatch.setattr(shapes, "MOST_VALUES", 5)
    monkeypatch.setattr(raw_documents, "_TIMES", 20)
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 20
    refused = Counter[str]()
    assert list(documents_in(path, refused, lists=())) == [{"a": 1}]
    # What is nested so deep is too long, too.
    assert refused == {"depth": 1, "too_large": 2, "max_values": 1}
    assert sum(isinstance(one, RefusedDocumentError) for one in list_in(path)) == 4


FIELDS = "`roles`, `agent_id`, `user_id`"


@each(
    ("document", "fault"),
    [
        ({"user_id": "u1"}, ""),
        ({"user_id": "u\0"}, "/user_id nul"),
        ({"user_id": "u\ud800"}, "encoding"),
        ({"user_id": "u1", "x": 10**30}, "number"),
        ({"user_id": "u1", "x": [1] * 30_000}, "max_values"),
        ({"user_id": "u1", "x": "x" * 11_000_000}, "too_large"),
        (
            {"user_id": "u1", "x": 1},
            f"/x unknown_field – There is no such field. There are: {FIELDS}.",
        ),
        ({}, "/user_id required"),
    ],
)
def test_what_is_made_of_it_is_read_as_a_body(document: dict[str, Any], fault: str) -> None:
    if not fault:
        assert checked(MemoryQuery, document) == document
        return
    with pytest.raises(RefusedDocumentError) as refused:
        checked(MemoryQuery, document)
    assert str(refused.value) == fault


def test_what_is_nested_without_end_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(RefusedDocumentError, match="depth"):
        checked(MemoryQuery, deep)
