"""Files of every kind in the process apart: what is read of them, and that hostile ones end as failures with a reason.

The files in files/ were made with LibreOffice, Pandoc and Chromium. Hostile ones are made here, and are harmless.
"""

import io
import zipfile
from pathlib import Path

import pytest

from memories.attachments.sandbox import ReadFile, read_file
from tests.each import each

FILES = Path(__file__).with_name("files")
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="a" '
    'Type="http://x/officeDocument" Target="word/document.xml"/></Relationships>'
)


def told(result: ReadFile) -> str:
    return "\n".join(block.text for block in result.blocks)


@each(
    "name, kind, words, place, page",
    [
        ("chromium.pdf", "pdf", "The deposit is 2,400 euros", "", 2),
        ("libreoffice.pdf", "pdf", "The deposit is 2,400 euros", "", 1),
        ("libreoffice.docx", "docx", "The deposit is 2,400 euros", "Lease › Deposit", None),
        ("pandoc.docx", "docx", "The deposit is 2,400 euros", "Lease › Deposit", None),
        ("pandoc.html", "html", "The deposit is 2,400 euros", "Lease › Deposit", None),
        ("libreoffice.html", "html", "The deposit is 2,400 euros", "Lease › Deposit", None),
        ("pandoc.md", "markdown", "The deposit is 2,400 euros", "Lease › Deposit", None),
        ("chromium.pdf", "pdf", "押金为两千四百欧元", "", 2),
        ("libreoffice.docx", "docx", "押金为两千四百欧元", "Lease › 押金", None),
    ],
)
def test_files_of_other_programs_are_read_with_their_place(
    name: str, kind: str, words: str, place: str, page: int | None
) -> None:
    result = read_file((FILES / name).read_bytes(), kind)
    assert result.is_read, result.reason
    found = [block for block in result.blocks if words in " ".join(block.text.split())]
    assert found, told(result)
    assert (" › ".join(found[0].headings[-2:]), found[0].page) == (place, page)


def package(document: bytes, **others: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("_rels/.rels", RELATIONS)
        packed.writestr("word/document.xml", document)
        for name, content in others.items():
            packed.writestr(name, content)
    return file.getvalue()


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def document(body: str, before: str = "") -> bytes:
    return f'{before}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'.encode()


ENTITIES = '<!DOCTYPE a [<!ENTITY a "{}">'.format("x" * 100) + "".join(
    f'<!ENTITY {chr(98 + at)} "{f"&{chr(97 + at)};" * 10}">' for at in range(8)
)
OUTSIDE = '<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/hostname">]>'


def pdf(*objects: bytes, trailer: bytes = b"/Root 1 0 R") -> bytes:
    body, places = b"%PDF-1.7\n", []
    for number, one in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % at for at in places)
    size = len(objects) + 1
    return body + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<<%s /Size %d>>\nstartxref\n%d\n%%%%EOF" % (
        size, table, trailer, size, len(body)
    )  # fmt: skip


# Pages that contain themselves, and a page whose parent is itself.
LOOP = pdf(
    b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 3 0 R]/Count 9>>", b"<</Type/Page/Parent 3 0 R>>"
)


@each(
    "content, kind, reasons",
    [
        (b"", "pdf", {"damaged"}),
        (b"%PDF-1.7\nnothing", "pdf", {"damaged"}),
        (LOOP, "pdf", {"damaged", "no_text", "too_costly", "too_slow"}),
        (b"PK\x03\x04", "docx", {"damaged"}),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "docx", {"encrypted"}),
        # It would unpack to 200 MB.
        (package(document(paragraph(" " * 200_000_000))), "docx", {"too_costly"}),
        (package(document(paragraph("&i;"), f"{ENTITIES}]>")), "docx", {"damaged", "no_text", "too_costly"}),
        # What a file of the machine says is no text of the document.
        (package(document(paragraph("&a;"), OUTSIDE)), "docx", {"damaged", "no_text"}),
        (package(document("<w:p>" * 50_000)), "docx", {"damaged"}),
        (b"<p>" + b"\x00" * 100, "html", {"no_text"}),
        (b"<script>" + b"x" * 1_000, "html", {"no_text"}),
        (b"", "html", {"no_text"}),
        (b"\xff\xfe", "text", {"no_text"}),
        (b"", "text", {"no_text"}),
        # Of another kind than they say.
        (package(document(paragraph("Bread"))), "pdf", {"damaged"}),
        (b"<html><body>Bread</body></html>", "pdf", {"damaged"}),
        (b"<html><body>Bread</body></html>", "docx", {"damaged"}),
        (package(document("")).replace(b"word/document.xml", b"word/documenx.xml"), "docx", {"damaged"}),
    ],
)
def test_a_hostile_file_is_a_failure_with_a_reason(content: bytes, kind: str, reasons: set[str]) -> None:
    result = read_file(content, kind)
    assert result.reason in reasons, result
    assert not result.blocks


def test_what_is_deep_or_long_is_read_as_far_as_it_may_be() -> None:
    deep = read_file(b"<div>" * 20_000 + b"at the bottom", "html")
    assert deep.is_read or deep.reason in ("too_costly", "damaged", "no_text")
    lists = read_file(b"> " * 5_000 + b"quoted", "markdown")
    assert lists.is_read or lists.reason in ("too_costly", "damaged")
    long = read_file(b"Rye bread. " * 400_000, "text")
    assert long.reason == "cut"
    assert 999_900 < len(told(long)) <= 1_000_000
    # No word is cut in two, for it may be a key; where there are no words nothing is lost.
    assert told(long).endswith("bread. ")
    assert len(told(read_file(b"x" * 1_100_000, "text"))) == 1_000_000
    key = "sk-proj-abcdefghijklmnopqrstuvwx"
    [block] = read_file(f"# {'Rye ' * 45}{key}\n\n".encode() + b"x", "markdown").blocks[1:]
    assert block.headings == ("Rye " * 45,)
    # So many headings as no person writes.
    many = read_file("".join(f"# {number}\n" for number in range(100_000)).encode(), "markdown")
    assert many.reason == "cut"


def test_what_stands_below_elements_in_elements_is_read_and_else_the_file_is_cut() -> None:
    deep, deeper = (
        b"<p>First</p>" + b"<div>" * depth + b"below" + b"</div>" * depth + b"<p>last</p>" for depth in (600, 5_000)
    )
    assert (read_file(deep, "html").reason, told(read_file(deep, "html"))) == ("", "First\nbelow\nlast")
    assert read_file(deeper, "html").reason == "cut"


def test_of_a_word_file_is_read_what_word_shows() -> None:
    run = "<w:r><w:rPr><w:vanish{}/></w:rPr><w:t> {}</w:t></w:r>"
    hidden = run.format("", "hidden") + run.format(' w:val="0"', "shown")
    moved = "<w:moveFrom><w:r><w:t>Moved.</w:t></w:r></w:moveFrom>"
    body = (
        f"<w:p>{moved}<w:r><w:t>Call 555</w:t><w:noBreakHyphen/><w:t>1234</w:t></w:r>{hidden}</w:p>"
        "<w:p><w:moveTo><w:r><w:t>Moved.</w:t></w:r></w:moveTo></w:p>"
    )
    relations = (
        RELATIONS.replace("officeDocument", "footnotes", 1).replace("word/document.xml", "footnotes.xml").encode()
    )
    notes = document(paragraph("In a footnote."))
    file = package(document(body), **{"word/_rels/document.xml.rels": relations, "word/footnotes.xml": notes})
    assert told(read_file(file, "docx")) == "Call 555-1234 shown\nMoved.\nIn a footnote."


def test_other_ends_of_lines_lose_nothing_of_a_markdown_file() -> None:
    plain = read_file(b"# Lease\n\nOne two three.\n\nLast words.\n", "markdown").blocks
    for end in ("\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"):
        odd = read_file(f"# Lease\n\nOne{end}two{end}three.\n\nLast words.\n".encode(), "markdown").blocks
        assert [block.headings for block in odd] == [block.headings for block in plain]
        assert odd[-1].text == "Last words."
    for end in ("\r\n", "\r"):
        text = f"# Lease{end}{end}One two three.{end}{end}Last words.{end}"
        assert read_file(text.encode(), "markdown").blocks == plain


def test_front_matter_of_a_markdown_file_is_no_heading() -> None:
    matter = "---\ntitle: Lease\n---\n"
    blocks = read_file(f"{matter}\n### Deposit\n\n2,400 euros.\n".encode(), "markdown").blocks
    assert [(block.text, block.headings) for block in blocks] == [
        (matter.strip(), ()),
        ("### Deposit", ("Deposit",)),
        ("2,400 euros.", ("Deposit",)),
    ]
    # A line alone, and a heading that is underlined, are what they always are.
    assert read_file(b"---\n\nBread\n", "markdown").blocks[-1].headings == ()
    assert read_file(b"Lease\n---\n\nBread\n", "markdown").blocks[-1].headings == ("Lease",)


def program(folder: Path, body: str) -> Path:
    """The program with another body: what a library might do that somebody has taken over."""
    own = (Path(__file__).parents[2] / "memories/attachments/program.py").read_text(encoding="utf-8")
    path = folder / "program.py"
    path.write_text(own.replace("    answer(kind, content)\n", f"    {body}\n"), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        # It opens no file, and no connection; it starts nothing, and does not take more memory than it may.
        ("import os; open('/etc/hostname')", "damaged"),
        ("__import__('_socket').socket()", "damaged"),
        ("x = bytearray(2 << 30)", "damaged"),
        ("os = __import__('os'); os.kill(os.getpid(), 11)", "damaged"),
        ("say({'reason': 'whatever it says'})", "damaged"),
        ("sys.stdout.write('no json')", "damaged"),
        ("say({'pages': 1, 'cut': False})", "no_text"),
        ("sys.stdout.write('[]\\n' * 100_000)", "damaged"),
        ("os = __import__('os'); os._exit(0)", "damaged"),
        ("sys.exit(3)", "damaged"),
        # It writes without end, waits without end, computes without end.
        ("\n    while True: sys.stdout.write('x' * 100_000)", "too_costly"),
        ("time.sleep(60)", "too_slow"),
    ],
)
def test_whatever_the_program_does_it_is_bounded(tmp_path: Path, body: str, reason: str) -> None:
    assert read_file(b"hello", "text", program=program(tmp_path, body), seconds=3).reason == reason


def test_the_program_as_it_is_reads_what_those_do_not(tmp_path: Path) -> None:
    """The positive control."""
    result = read_file(b"hello", "text", program=program(tmp_path, "answer(kind, content)"))
    assert (told(result), result.reason) == ("hello", "")
