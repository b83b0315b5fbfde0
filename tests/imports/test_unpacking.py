"""Archives as they come, in one another, cut off, damaged and made to fill a disk; texts in other forms of Unicode."""

import io
import json
import os
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memories.imports import unpacking
from memories.imports.findings import UnreadableError
from memories.imports.places import opened
from memories.imports.raw_documents import RefusedDocumentError
from memories.imports.records import KeptFile, Record
from memories.imports.sources import SOURCES, chosen, detected
from tests.imports.test_sources import NOW, chatgpt, found, left_out, said, texts, written

TALKS = [[chatgpt(said("user", f"Number {at}"), conversation_id=f"c{at}")] for at in range(4)]


def packed(*members: tuple[str, Any], method: int = zipfile.ZIP_DEFLATED, streamed: bool = False) -> bytes:
    """`streamed`: the head of a file does not say how large it is, as in what services send."""
    file = _Stream() if streamed else io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content if isinstance(content, bytes | str) else json.dumps(content))
    return file.getvalue()


class _Stream(io.BytesIO):
    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise OSError

    def seek(self, *_args: int) -> int:
        raise OSError


def given(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def export(**more: Any) -> bytes:
    members = [(f"conversations-{at}.json", one) for at, one in enumerate(TALKS)]
    return packed(("a.png", b"x" * 5000), *members, **more)


def faults(path: Path) -> list[str]:
    with opened([str(path)]) as one:
        return [str(fault) for fault in one.faults]


def test_archives_in_an_archive(tmp_path: Path) -> None:
    """As exports of batches come; what is deeper is left out."""
    deeper = packed(("conversations.json", TALKS[2]))
    inner = packed(("conversations.json", TALKS[0]), ("deeper.zip", deeper))
    path = given(tmp_path / "x.zip", packed(("batch-1.zip", inner), ("b/batch-2.zip", packed(("c.json", TALKS[1])))))
    records = found("chatgpt", path)
    assert (texts(records), left_out(records)) == (["user: Number 1", "user: Number 0"], {"other_file": 1})
    with opened([str(path)]) as one:
        assert [part.name for part in one.parts] == ["b/batch-2/c.json", "batch-1/conversations.json"]
        assert detected(one) == "chatgpt"


def test_a_folder_of_archives(tmp_path: Path) -> None:
    folder = tmp_path / "batches"
    folder.mkdir()
    for at, talks in enumerate(TALKS):
        given(folder / f"batch-{at}.zip", packed(("conversations.json", talks)))
    assert texts(found("chatgpt", folder)) == [f"user: Number {at}" for at in range(4)]
    # One that is attached to notes is none.
    written(folder / "note.md", "Likes tea")
    assert texts(found("markdown", folder)) == ["/memories/note.md: Likes tea"]


def test_a_broken_archive_in_an_archive_is_left_out_alone(tmp_path: Path) -> None:
    path = given(tmp_path / "x.zip", packed(("a.zip", b"PK\x03\x04no archive"), ("c.json", TALKS[1])))
    assert texts(found("chatgpt", path)) == ["user: Number 1"]
    assert [one.split(" – ")[0] for one in faults(path)] == ["cut_off"]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_of_an_archive_that_ends_early_what_is_whole_comes_in(tmp_path: Path, method: int, streamed: bool) -> None:
    if streamed and method == zipfile.ZIP_STORED:
        # Nobody can tell where a file in it ends.
        path = given(tmp_path / "x.zip", export(method=method, streamed=True)[:-300])
        with pytest.raises(UnreadableError, match="otherwise"), opened([str(path)]):
            pass
        return
    whole = export(method=method, streamed=streamed)
    assert texts(found("chatgpt", given(tmp_path / "w.zip", whole))) == [f"user: Number {at}" for at in range(4)]
    third = whole.index(b"conversations-2.json")
    path = given(tmp_path / "x.zip", whole[: third + 120])
    records = found("chatgpt", path)
    assert texts(records) == ["user: Number 0", "user: Number 1"]
    [archive] = faults(path)
    assert archive == f"cut_off – the archive ends early, at byte {third + 120:,}, in file 4 ('conversations-2.json')"
    assert [str(one).split(",")[0] for one in records if isinstance(one, RefusedDocumentError)] == [
        "cut_off – the file ends early"
    ]
    with opened([str(path)]) as one:
        assert detected(one) == "chatgpt"
    # Where its list alone is missing nothing is lost.
    path = given(tmp_path / "y.zip", whole[:-60])
    assert texts(found("chatgpt", path)) == [f"user: Number {at}" for at in range(4)]


def test_half_a_note_is_no_note(tmp_path: Path) -> None:
    """A file that is stored once would keep its half for ever."""
    whole = packed(("a.md", "Likes tea"), ("b.md", os.urandom(4000).hex()))
    path = given(tmp_path / "x.zip", whole[:2000])
    assert texts(found("markdown", path)) == ["/memories/a.md: Likes tea"]


def test_a_damaged_file_is_left_out_alone(tmp_path: Path) -> None:
    for streamed in (False, True):
        whole = export(streamed=streamed)
        at = whole.index(b"conversations-1.json") + 40
        broken = whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :]
        path = given(tmp_path / "x.zip", broken)
        assert texts(found("chatgpt", path)) == ["user: Number 0", "user: Number 2", "user: Number 3"]
        assert faults(path) == ["damaged – in the archive file 3 ('conversations-1.json')"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("size", "too_much"),
        ("times", "too_much"),
        ("files", "too_much"),
        ("nested", "too_much"),
        ("password", "encrypted"),
    ],
)
def test_archives_that_are_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> None:
    content = packed(("c.json", b" " * 500_000))
    if name == "size":
        monkeypatch.setattr(unpacking, "MOST_UNPACKED", 100)
    elif name == "times":
        monkeypatch.setattr(unpacking, "ALWAYS", 0)
    elif name == "nested":
        # Each is small by itself.
        monkeypatch.setattr(unpacking, "ALWAYS", 1_000_000)
        content = packed(*((f"{at}.zip", content) for at in range(5)))
    elif name == "files":
        monkeypatch.setattr(unpacking, "MOST_FILES", 3)
        content = packed(*((f"{at}.json", "[]") for at in range(5)))
    else:
        # The flag of the head, and that of the list.
        broken = bytearray(content)
        for at in (6, content.index(b"PK\x01\x02") + 8):
            broken[at] |= 1
        content = bytes(broken)
    path = given(tmp_path / "x.zip", content)
    with pytest.raises(UnreadableError) as refused, opened([str(path)], within=tmp_path):
        pass
    assert refused.value.code == code
    assert [one.name for one in tmp_path.iterdir()] == ["x.zip"]


ENCODINGS = ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_texts_in_other_forms_of_unicode(tmp_path: Path, encoding: str) -> None:
    """With a mark, and where JSON and CSV show it, without."""
    talk = json.dumps([chatgpt(said("user", "我住在苏州 🐝"))], ensure_ascii=False)
    path = given(tmp_path / "x.json", talk.encode(encoding))
    for root in (path, given(tmp_path / "x.zip", packed(("conversations.json", talk.encode(encoding))))):
        assert texts(found("chatgpt", root)) == ["user: 我住在苏州 🐝"]
        with opened([str(root)]) as one:
            assert detected(one) == "chatgpt"
    rows = given(tmp_path / "x.csv", "text\tuser_id\n养蜂\tu1\n".encode(encoding))
    assert texts(found("facts", rows)) == ["fact: 养蜂"]
    lines = given(tmp_path / "x.jsonl", '{"text": "养蜂", "user_id": "u"}\n'.encode(encoding) * 1)
    assert texts(found("facts", lines)) == ["fact: 养蜂"]


def test_a_note_in_utf_16_is_stored_as_text(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    for name, encoding in (("a.md", "utf-16"), ("b.md", "utf-8-sig"), ("c.md", "utf-8")):
        folder.mkdir(exist_ok=True)
        os.utime(given(folder / name, "爱喝茶".encode(encoding)), (1_700_000_000, 1_700_000_000))
    records = found("markdown", folder)
    assert texts(records) == [f"/memories/{name}.md: 爱喝茶" for name in "abc"]
    assert {one.modified_at.timestamp() for one in records if isinstance(one, KeptFile) and one.modified_at} == {1.7e9}
    written(folder / "AGENTS.md", "x")
    assert {one.data.decode() for one in found("deepagents", folder) if isinstance(one, KeptFile)} == {"爱喝茶", "x"}


def test_half_a_character_in_utf_16_is_refused_where_it_stands(tmp_path: Path) -> None:
    talk = json.dumps([{"memory": "bee @", "user_id": "u"}, {"memory": "tea", "user_id": "u"}])
    path = given(tmp_path / "x.json", talk.encode("utf-16-le").replace("@".encode("utf-16-le"), b"\x3d\xd8"))
    records = found("mem0", path)
    # It is refused with the memory that it stands in.
    assert texts(records) == ["fact: bee \udced\udca0\udcbd", "fact: tea"]
    # Cut off within a letter.
    path.write_bytes(talk.encode("utf-16-le")[:-7])
    records = found("mem0", path)
    assert texts(records) == ["fact: bee @"]
    assert [one.code for one in records if isinstance(one, RefusedDocumentError)] == ["cut_off"]


def test_files_of_an_archive_have_their_dates(tmp_path: Path) -> None:
    member = zipfile.ZipInfo("a.md", (2024, 5, 6, 7, 8, 10))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(member, "Likes tea")
    for content in (file.getvalue(), file.getvalue()[:-30]):
        [note] = [one for one in found("markdown", given(tmp_path / "x.zip", content)) if isinstance(one, KeptFile)]
        assert note.modified_at
        assert note.modified_at.isoformat() == "2024-05-06T07:08:10+00:00"


def test_what_is_hidden_is_counted(tmp_path: Path) -> None:
    """Also links to it."""
    written(tmp_path / "outside/.ssh/id.md", "Key")
    for name in ("a.md", ".git/x.md", "b/.keys/y.md"):
        written(tmp_path / "notes" / name, "Likes tea")
    (tmp_path / "notes/link.md").symlink_to(tmp_path / "outside/.ssh/id.md")
    records: list[Record] = found("markdown", tmp_path / "notes")
    assert (texts(records), left_out(records)) == (["/memories/a.md: Likes tea"], {"hidden": 3})


def test_what_a_database_begins_with_names_its_source(tmp_path: Path) -> None:
    """It cannot be read, and it is said that it ends early."""
    path = tmp_path / "store.db"
    _store(path)
    whole = path.read_bytes()
    [fact] = found("langgraph", path)
    assert texts([fact]) == ["fact: Likes tea"]
    path.write_bytes(whole[:-4096])
    with opened([str(path)], now=NOW) as one:
        assert detected(one) == "langgraph"
        parts, _ = chosen(one, "langgraph")
        with pytest.raises(RefusedDocumentError, match=f"cut_off – the file ends early, at byte {len(whole) - 4096:,}"):
            list(SOURCES["langgraph"].read(one, parts))


def _store(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE store (prefix TEXT, key TEXT, value BLOB, created_at TEXT, PRIMARY KEY (prefix, key))"
        )
        database.execute("INSERT INTO store VALUES ('m', 'a', ?, '')", (json.dumps({"text": "Likes tea"}),))
