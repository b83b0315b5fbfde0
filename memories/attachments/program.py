"""The program that reads one file, alone in a process of its own: `python -I program.py KIND`, the file on stdin.

It imports nothing of the hub. Before it reads a byte it gives up what it does not need: it can open no file and no
connection any more, start no process, write no file, and has little memory and time. What a library does with a hostile
file ends here. It answers with JSON, a block of text a line: `{"text", "headings", "page"}`; the last line is
`{"pages", "cut"}`, or `{"reason"}` with a code of AttachmentReason.
"""

import codecs
import importlib
import io
import json
import logging
import pkgutil
import posixpath
import re
import resource
import signal
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

MEMORY = 512 * 1024 * 1024
CPU_SECONDS, WALL_SECONDS = 15, 25
# A long file is read so far, and then no further.
SOFT_SECONDS = 8.0
MOST_CHARACTERS, MOST_PAGES, MOST_BLOCKS = 1_000_000, 2_000, 50_000
LONGEST_HEADING, LONGEST_WORD, DEEPEST = 200, 1_000, 6
# Nothing can be loaded later: what decodes texts, and what libraries load when they meet something.
LOADED = {
    # With all that it loads only when it meets something.
    "pdf": ("pypdf.*",),
    "docx": ("lxml.etree",),
    "html": ("lxml.html", "lxml.etree"),
    "markdown": ("markdown_it",),
    "text": (),
}
ENCODINGS = (
    "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "ascii", "latin-1", "cp1250", "cp1251",
    "cp1252", "cp1253",
    "cp1254", "cp1255", "cp1256", "cp1257", "cp437", "iso8859-2", "iso8859-5", "iso8859-7", "iso8859-9", "iso8859-15",
    "koi8-r", "koi8-u", "gb18030", "gbk", "gb2312", "big5", "big5hkscs", "shift_jis", "cp932", "euc_jp", "iso2022_jp",
    "euc_kr", "cp949", "mac_roman",
)  # fmt: skip
# Of libraries alone: no document may name them.
INNER_ENCODINGS = ("charmap", "unicode_escape", "raw_unicode_escape", "idna")


class Block(NamedTuple):
    """A piece of the text: a paragraph, or all of a page."""

    text: str
    headings: tuple[str, ...] = ()
    page: int | None = None


class CannotReadError(Exception):
    """Why, as a code."""


class Document(NamedTuple):
    """Its blocks in order, read one after the other; how many pages it has, if that can be told; whether the library
    stopped before its end."""

    blocks: Iterator[Block]
    pages: int | None = None
    is_cut: bool = False


def main() -> None:
    kind = sys.argv[1]
    logging.disable(logging.CRITICAL)
    for name in LOADED[kind]:
        load(name)
    for name in (*ENCODINGS, *INNER_ENCODINGS):
        codecs.lookup(name)
    content = sys.stdin.buffer.read()
    give_up_rights()
    answer(kind, content)


def load(name: str) -> None:
    package = importlib.import_module(name.removesuffix(".*"))
    if name.endswith(".*"):
        for inner in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            with suppress(ImportError):
                importlib.import_module(inner.name)


def give_up_rights() -> None:
    """Nothing can be opened, started or written any more; what is used is bounded."""
    # It ends by itself, too, when whoever waits for it is gone.
    signal.alarm(WALL_SECONDS)
    limits = {
        "RLIMIT_CPU": CPU_SECONDS,
        "RLIMIT_AS": MEMORY,
        "RLIMIT_NPROC": 0,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_CORE": 0,
        # Standard input, output and errors are open already: no file, no connection, no pipe comes after them.
        "RLIMIT_NOFILE": 3,
    }
    for name, limit in limits.items():
        # macOS bounds no address space.
        with suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (limit, limit))


def answer(kind: str, content: bytes) -> None:
    began = time.monotonic()
    length = count = 0
    try:
        document = READERS[kind](content)
        is_cut = document.is_cut or (document.pages or 0) > MOST_PAGES
        for block in document.blocks:
            text = cut(block.text, MOST_CHARACTERS - length)
            say({"text": text, "headings": [cut(one, LONGEST_HEADING) for one in block.headings], "page": block.page})
            length += len(text)
            count += 1
            is_full = len(text) < len(block.text) or length >= MOST_CHARACTERS or count >= MOST_BLOCKS
            if is_full or time.monotonic() - began > SOFT_SECONDS:
                is_cut = True
                break
        say({"pages": document.pages, "cut": is_cut})
    except CannotReadError as error:
        say({"reason": str(error)})
    except (MemoryError, RecursionError):
        say({"reason": "too_costly"})
    except Exception as error:  # noqa: BLE001 - libraries raise anything at all for a broken file
        # An exhausted memory hides behind errors of libraries.
        say({"reason": "too_costly" if isinstance(error.__context__, MemoryError) else "damaged"})


def cut(text: str, most: int) -> str:
    """Its first characters, without the beginning of a word: half of a key would not be known for one."""
    end = most
    if len(text) <= most:
        return text
    while end and text[end - 1].isascii() and not text[end - 1].isspace() and most - end <= LONGEST_WORD:
        end -= 1
    return text[: end if most - end <= LONGEST_WORD else most]


def say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")


def pdf(content: bytes) -> Document:
    import pypdf
    from pypdf.errors import FileNotDecryptedError

    reader = pypdf.PdfReader(io.BytesIO(content))
    try:
        if reader.is_encrypted and not reader.decrypt(""):
            raise CannotReadError("encrypted")
        pages = len(reader.pages)
    except FileNotDecryptedError as error:
        raise CannotReadError("encrypted") from error
    return Document(_pdf_pages(reader, min(pages, MOST_PAGES)), pages)


def _pdf_pages(reader: Any, count: int) -> Iterator[Block]:
    broken = 0
    for number in range(count):
        try:
            text = reader.pages[number].extract_text()
        except (MemoryError, RecursionError):
            raise
        except Exception:  # noqa: BLE001 - one broken page loses no other
            broken += 1
            continue
        yield Block(text, page=number + 1)
    if broken and broken == count:
        raise CannotReadError("damaged")


# A part of a document that unpacks to more is a bomb.
MOST_UNPACKED = 64 * 1024 * 1024
_TEXTS = frozenset({"t", "tab", "br", "cr", "noBreakHyphen", "lastRenderedPageBreak"})
_WRITTEN_AS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
# A tab of properties is a position, and no text; what was deleted, or moved from here, is not there.
_NOT_THERE = frozenset({"p", "pPr", "rPr", "del", "moveFrom", "Fallback"})


def docx(content: bytes) -> Document:
    # An encrypted one is in a container of another kind.
    if content[:8] == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
        raise CannotReadError("encrypted")
    package = zipfile.ZipFile(io.BytesIO(content))
    main = _related(package, "_rels/.rels", "/officeDocument")
    if main is None:
        raise CannotReadError("damaged")
    folder, _slash, name = main.rpartition("/")
    relations = f"{folder}/_rels/{name}.rels"
    styles = _related(package, relations, "/styles", folder)
    levels = dict(_levels(_part(package, styles))) if styles else {}
    body = _part(package, main)
    has_pages = any(_name(one) == "lastRenderedPageBreak" for one in body.iter())
    notes = [_related(package, relations, kind, folder) for kind in ("/footnotes", "/endnotes")]
    blocks = [_docx_blocks(body, levels, has_pages=has_pages)]
    blocks += [_docx_blocks(_part(package, one), {}, has_pages=False) for one in notes if one]
    return Document(chain.from_iterable(blocks))


def _part(package: Any, name: str) -> Any:
    """The root of one of its documents of XML. No entity is replaced, and nothing else is loaded."""
    import lxml.etree

    with package.open(name) as file:
        packed = file.read(MOST_UNPACKED + 1)
    if len(packed) > MOST_UNPACKED:
        raise CannotReadError("too_costly")
    parser = lxml.etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    return lxml.etree.fromstring(packed, parser)


def _related(package: Any, relations: str, kind: str, folder: str = "") -> str | None:
    """The name of the part that is related so, by the end of its type: those of "strict" files begin otherwise."""
    try:
        root = _part(package, relations.lstrip("/"))
    except KeyError:
        return None
    for one in root:
        target = one.get("Target", "")
        if one.get("Type", "").endswith(kind) and target and one.get("TargetMode") != "External":
            path = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            return path if path in package.NameToInfo else None
    return None


def _name(one: Any) -> str:
    return one.tag.rpartition("}")[2] if isinstance(one.tag, str) else ""


def _child(one: Any, *names: str) -> Any:
    for name in names:
        one = next((inner for inner in one if _name(inner) == name), None)
        if one is None:
            return None
    return one


def _value(one: Any) -> str:
    """The value of an element, in whichever namespace."""
    return (
        next((value for name, value in one.items() if name.rpartition("}")[2] == "val"), "") if one is not None else ""
    )


def _levels(styles: Any) -> Iterator[tuple[str, int]]:
    """Of each style of headings its id and level, from 1."""
    for style in styles:
        if _name(style) == "style":
            pk = next((value for name, value in style.items() if name.rpartition("}")[2] == "styleId"), "")
            found = re.fullmatch(r"heading ([1-9])|(title)", _value(_child(style, "name")).casefold())
            if found:
                yield pk, int(found[1] or 1)


def _docx_blocks(body: Any, levels: dict[str, int], *, has_pages: bool) -> Iterator[Block]:
    """Paragraph by paragraph. Pages are those of the program that saved it last, if it noted them."""
    headings: list[tuple[int, str]] = []
    page = 1
    for paragraph in body.iter():
        if _name(paragraph) != "p" or any(_name(one) == "Fallback" for one in paragraph.iterancestors()):
            continue
        text, before, breaks = _paragraph(paragraph)
        level = levels.get(_value(_child(paragraph, "pPr", "pStyle")), 0)
        if level and text.strip():
            headings = [*(one for one in headings if one[0] < level), (level, " ".join(text.split()))][-DEEPEST:]
        if text.strip():
            yield Block(text, tuple(one for _level, one in headings), page + before if has_pages else None)
        page += breaks


def _paragraph(paragraph: Any) -> tuple[str, int, int]:
    """Its text; how many pages end before its first word, and in all of it."""
    parts: list[str] = []
    before = breaks = 0
    for one in _own_parts(paragraph):
        name = _name(one)
        if name == "lastRenderedPageBreak":
            breaks += 1
            before = before if "".join(parts).strip() else breaks
        else:
            parts.append(_WRITTEN_AS.get(name, one.text or ""))
    return "".join(parts), before, breaks


def _own_parts(paragraph: Any) -> Iterator[Any]:
    """Texts, tabs and breaks, without those of paragraphs inside of it (text boxes), which come by themselves."""
    waiting = list(reversed(paragraph))
    while waiting:
        one = waiting.pop()
        name = _name(one)
        if name in _NOT_THERE or (name == "r" and _is_vanished(one)):
            continue
        if name in _TEXTS and _name(one.getparent()) == "r":
            yield one
        else:
            waiting.extend(reversed(one))


def _is_vanished(run: Any) -> bool:
    """Whether Word shows nothing of it."""
    vanish = _child(run, "rPr", "vanish")
    return vanish is not None and _value(vanish) not in ("0", "false", "off")


_HTML_HIDDEN = frozenset(
    {"script", "style", "noscript", "template", "svg", "math", "iframe", "object", "select", "head"}
)
# fmt: off
_HTML_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav",
    "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
})
# fmt: on


def html(content: bytes) -> Document:
    import lxml.etree
    import lxml.html

    # It stops where a text is deeper than 2,048 elements (256 without `huge_tree`), and says so in its log alone.
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    encoding = re.search(
        rb"<meta[^>]{0,300}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([A-Za-z0-9_.:-]{2,40})", content[:4096], re.IGNORECASE
    )
    text = decoded(content, declared=encoding[1].decode() if encoding else "").replace("\x00", "")
    try:
        root = lxml.html.document_fromstring(text.encode(), parser=parser)
    except lxml.etree.ParserError:
        return Document(iter(()))
    title = root.findtext(".//title") or ""
    is_cut = any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log)
    return Document(_html_blocks(root, " ".join(title.split())), is_cut=is_cut)


def _html_blocks(root: Any, title: str) -> Iterator[Block]:
    """Walks the tree by events: a hostile one is deeper than any stack."""
    import lxml.etree

    text = _Shown([(0, title)] if title else [])
    for event, one in lxml.etree.iterwalk(root, events=("start", "end")):
        if event == "start":
            yield from text.begin(one)
        else:
            yield from text.end(one)
    yield from text.flush()


class _Shown:
    """What of a page is shown, as it is read: the block that is open, and the headings above it."""

    def __init__(self, headings: list[tuple[int, str]]) -> None:
        self._headings = headings
        self._parts: list[str] = []
        # The element inside of which nothing is shown.
        self._hidden: Any = None

    def begin(self, one: Any) -> Iterator[Block]:
        if self._hidden is not None:
            return
        tag = one.tag if isinstance(one.tag, str) else ""
        if tag in _HTML_HIDDEN or _is_hidden(one):
            self._hidden = one
            return
        if tag in _HTML_BLOCKS:
            yield from self.flush()
        elif tag in ("br", "td", "th"):
            self._parts.append(" ")
        self._parts.append(one.text or "")

    def end(self, one: Any) -> Iterator[Block]:
        if self._hidden is not None and one is not self._hidden:
            return
        tag = one.tag if isinstance(one.tag, str) else ""
        if self._hidden is None and tag in _HTML_BLOCKS:
            heading = " ".join("".join(self._parts).split())
            if heading and re.fullmatch("h[1-6]", tag):
                level = int(tag[1])
                self._headings = [*(known for known in self._headings if known[0] < level), (level, heading)]
            yield from self.flush()
        self._hidden = None
        self._parts.append(one.tail or "")

    def flush(self) -> Iterator[Block]:
        text = re.sub(r"[ \t\r\n\f]+", " ", "".join(self._parts)).strip()
        self._parts.clear()
        if text:
            yield Block(text, tuple(one for _level, one in self._headings))


def _is_hidden(one: Any) -> bool:
    """What a browser does not show: a text that only a machine reads is no passage."""
    style = re.sub(r"\s+", "", (one.get("style") or "")[:2000]).casefold()
    return one.get("hidden") is not None or "display:none" in style or "visibility:hidden" in style


_ENDS = re.compile(r"(?:---|\.\.\.)[ \t]*\Z")


def markdown(content: bytes) -> Document:
    text = decoded(content)
    return Document(_markdown_blocks(text))


def _markdown_blocks(text: str) -> Iterator[Block]:
    """Its outermost blocks as they are written, below the headings that a reader of Markdown sees."""
    from markdown_it import MarkdownIt

    # Python knows more ends of lines than Markdown does (U+2028, form feeds): its places would be others.
    lines = re.sub(r"\r\n?", "\n", text).split("\n")
    # What tells of the file, in YAML, is no heading above what follows.
    if lines[0].rstrip() == "---" and (end := next((at for at, one in enumerate(lines) if at and _ENDS.match(one)), 0)):
        yield Block("\n".join(lines[: end + 1]))
        lines = lines[end + 1 :]
    # The words alone are needed: nothing is made of what stands inside of a block.
    tokens = MarkdownIt("commonmark").enable("table").disable(["inline"]).parse("\n".join(lines))
    headings: list[tuple[int, str]] = []
    upto = 0
    for place, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        if token.type == "heading_open":
            level, words = int(token.tag[1]), " ".join(tokens[place + 1].content.split())
            headings = [*(known for known in headings if known[0] < level), (level, words)]
        first, last = token.map
        # What is between two blocks defines links.
        block = "\n".join(lines[max(first, upto) : last]).strip("\n")
        upto = max(upto, last)
        if block.strip():
            yield Block(block, tuple(one for _level, one in headings))


def text(content: bytes) -> Document:
    return Document(
        Block(one) for one in re.split(r"\n[ \t\r]*\n", decoded(content).replace("\r\n", "\n")) if one.strip()
    )


def decoded(content: bytes, *, declared: str = "") -> str:
    """As its mark says, as it declares, as UTF-8, or else as Windows writes in the west or in China."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if content.startswith(mark):
            return content.decode(name, "replace")
    with suppress(UnicodeDecodeError):
        return content.decode("utf-8")
    with suppress(LookupError, OSError, ImportError, TypeError, ValueError):
        if declared and codecs.lookup(declared).name in KNOWN:
            return content.decode(declared, "replace")
    for name in ("gb18030", "cp1252"):
        with suppress(UnicodeDecodeError):
            found = content.decode(name)
            # Bytes of the west are seldom Chinese for long.
            if name != "gb18030" or sum("\u4e00" <= one <= "\u9fff" for one in found) * 4 > len(found):
                return found
    return content.decode("cp1252", "replace")


KNOWN = {codecs.lookup(name).name for name in ENCODINGS}
READERS: dict[str, Callable[[bytes], Document]] = {
    "pdf": pdf,
    "docx": docx,
    "html": html,
    "markdown": markdown,
    "text": text,
}

if __name__ == "__main__":
    main()
