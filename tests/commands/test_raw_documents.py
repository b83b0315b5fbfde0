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
from memories.imports.raw_documents import (
    RefusedDocumentError,
    checked,
    found_in,
    lines_in,
    unended_in,
)
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
                expected = [one for one in members if isinstance(one, dict)]
                others = len(members) - len(expected)
                inside = tmp_path / "inside.json"
                inside.write_text(json.dumps({"x": 1, "items": members}, indent=indent, ensure_ascii=ascii_only))
                for documents in (found_in(path), found_in(inside, lists=("results", "items"))):
                    found = list(documents)
                    assert [one for one in found if isinstance(one, dict)] == expected
                    assert [str(one) for one in found if not isinstance(one, dict)] == ["other_form"] * others


def test_lines_and_an_object_alone(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": "x\\ny"}\r\n\r\n{"b": [1, 2]}\n[3]\n')
    assert [getattr(one, "code", one) for one in found_in(path)] == [{"a": "x\ny"}, {"b": [1, 2]}, "other_form"]
    assert [getattr(one, "code", one) for one in lines_in(path)] == [{"a": "x\ny"}, {"b": [1, 2]}, "other_form"]
    path.write_text(json.dumps({"a": {"b": 1}}, indent=1))
    assert list(found_in(path, lists=("items",))) == [{"a": {"b": 1}}]


WHOLE = '{"a": 1}, {"b": "]"}'


@pytest.mark.parametrize("chunk", [7, 1024 * 1024])
@pytest.mark.parametrize(
    ("content", "whole", "fault"),
    [
        (f"[{WHOLE}]", 2, ""),
        (f"[{WHOLE}, ", 2, "cut_off – the file ends early, at byte 22, within what begins at byte 22; 2 before it are"),
        (f'[{WHOLE}, {{"c": "d', 2, "cut_off – the file ends early, at byte 31, within what begins at byte 23; 2"),
        (f"[{WHOLE}", 1, "cut_off – the file ends early, at byte 21, within what begins at byte 11; 1 before it are"),
        (f"[{WHOLE}]]", 2, "syntax – something follows its end, at byte 22"),
        (f"[{WHOLE}] x", 2, "syntax – something follows its end, at byte 22"),
        ("[", 0, "cut_off – the file ends early, at byte 1, within what begins at byte 1; 0 before it are whole"),
        # Of the list in a member, and of lines.
        (
            f'{{"n": 1, "items": [{WHOLE}, {{"c": [1,',
            2,
            "cut_off – the file ends early, at byte 50, within what begins",
        ),
        ('{"n": 1, "all": [1,', 0, "cut_off – the file ends early, at byte 19, within what begins at byte 0; 0"),
        ('{"a": 1}\n{"b": 2}\n{"c": "', 2, "cut_off – the file ends early, at byte 25, within what begins at byte 18;"),
    ],
)
def test_of_a_file_that_ends_early_what_is_whole_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, content: str, whole: int, fault: str
) -> None:
    monkeypatch.setattr(raw_documents, "_CHUNK", chunk)
    path = tmp_path / "file.json"
    path.write_text(content)
    *found, last = [*found_in(path, lists=("items",)), ""]
    documents = [one for one in found if isinstance(one, dict)]
    faults = [one for one in found if not isinstance(one, dict)]
    assert (len(documents), last) == (whole, "")
    assert [str(one)[: len(fault)] for one in faults] == ([fault] if fault else [])


def test_what_a_document_without_an_end_begins_with_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    one = {"id": "c\\", "mapping": {"a": {"message": {"parts": ['x"', "{y"]}}}, "title": "Beekeeping"}
    text = json.dumps([one])
    path.write_text(text)
    assert unended_in(found_in(path)) == {}
    for at in range(2, len(text) - 2):
        path.write_text(text[:at])
        begun = unended_in(found_in(path))
        assert begun.keys() <= one.keys()
    assert begun["mapping"] == one["mapping"]


@pytest.mark.parametrize("content", ["7", '"a"'])
def test_what_is_no_list_and_no_object_is_refused_before_anything_is_taken(tmp_path: Path, content: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="it h"):
        found_in(path)


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
    found = list(found_in(path))
    assert [one for one in found if isinstance(one, dict)] == [{"a": 1}]
    # What is nested so deep is too long, too.
    refused = Counter(str(one) for one in found if isinstance(one, RefusedDocumentError))
    assert refused == {"depth": 1, "too_large": 2, "max_values": 1}


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
