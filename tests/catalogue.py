"""The catalogue of translations: what is to be translated, wherever it stands, and `python -m tests.catalogue`, which
brings the files in locale/ up to it.

Read by Python's and Django's own parsers, so that nobody needs the gettext tools.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import django
import polib  # type: ignore[import-untyped]
import unfold
from django.utils.translation.template import templatize

from memories import conf
from tests.frozen import sources

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "locale" / "zh_Hans" / "LC_MESSAGES"
ENGLISH = ROOT / "locale" / "en" / "LC_MESSAGES" / "django.po"
PO, MO = FOLDER / "django.po", FOLDER / "django.mo"
UNFOLD = Path(unfold.__file__).parent
# Parts of Unfold that the hub does not use.
UNUSED = ("contrib/import_export", "contrib/simple_history", "contrib/guardian", "contrib/forms", "unfold_crispy")
# Name of the function → where in its arguments are context, singular and plural.
CALLS = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop", "_lazy"), (None, 0, None)),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), (0, 1, None)),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (None, 0, 1)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), (0, 1, 2)),
}
_IN_TEMPLATE = re.compile(
    r" (_|gettext|pgettext|ngettext|npgettext)\(((?:[^()'\"]|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")*)\) "
)
_HTML = re.compile(r"</?[a-z]+[^>]*>")
_PLACEHOLDER = re.compile(r"%\((\w+)\)")


@dataclass(frozen=True)
class Message:
    """One text to translate; empty context and plural: none."""

    text: str
    plural: str = ""
    context: str = ""

    @property
    def placeholders(self) -> set[str]:
        return set(_PLACEHOLDER.findall(self.text + self.plural))

    @property
    def tags(self) -> list[str]:
        """Its HTML tags, those of the plural when there is one."""
        return _HTML.findall(self.plural or self.text)


def wanted() -> dict[Message, str]:
    """Every text that a page can show → the file that it is from, or what it is."""
    found: dict[Message, str] = {}
    for message, place in [*_ours(), *_of_data(), *_of_unfold(), *_of_django_in_another_form()]:
        found.setdefault(message, place)
    return found


def in_python(nodes: Iterable[ast.AST]) -> Iterator[Message]:
    """What calls of gettext among the nodes of a source name."""
    for node in nodes:
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in CALLS and (message := _message(name, node.args)):
                yield message


def in_template(source: str) -> Iterator[Message]:
    """What the template's tags name."""
    for name, arguments in _IN_TEMPLATE.findall(templatize(source)):
        call = ast.parse(f"{name}({arguments})", mode="eval").body
        if isinstance(call, ast.Call) and (message := _message(name, call.args)):
            yield message


def _message(name: str, given: list[ast.expr]) -> Message | None:
    texts = [one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else "" for one in given]
    context, single, plural = ("" if at is None or at >= len(texts) else texts[at] for at in CALLS[name])
    return Message(single, plural, context) if single else None


def _ours() -> Iterator[tuple[Message, str]]:
    for source in sources():
        yield from ((message, source.place) for message in in_python(source.nodes))
    for path in sorted([*ROOT.glob("templates/**/*.html"), *ROOT.glob("templates/**/*.txt")]):
        place = path.relative_to(ROOT).as_posix()
        yield from ((message, place) for message in in_template(path.read_text(encoding="utf-8")))


@cache
def errors() -> dict[str, tuple[str, str]]:
    """All errors of the tree, its leaves in other rooms too: name → what it says, and where it is declared."""
    classes = [(one.place, node) for one in sources() for node in one.nodes if isinstance(node, ast.ClassDef)]
    names, before = {"MemoryHubError"}, 0
    # Until no class is left whose base is one of them.
    while len(names) > before:
        before = len(names)
        names |= {node.name for _, node in classes if names & {getattr(base, "id", "") for base in node.bases}}
    says = {node.name: (" ".join((ast.get_docstring(node) or "").split()), place) for place, node in classes}
    return {name: says[name] for name in sorted(names)}


def _of_data() -> Iterator[tuple[Message, str]]:
    """What is translated when it is shown: the errors' sentences and the table of the numbers."""
    for sentence, place in errors().values():
        yield Message(sentence), place
    for number in conf.NUMBERS.values():
        texts = (number.label, number.says, number.unit, number.zero, str(number.group), number.group.says)
        for text in filter(None, texts):
            yield Message(text), "memories/conf/table.py"
    for text in ("on", "off", "On", "Off"):
        yield Message(text), "memories/conf/kinds.py"


def _of_unfold() -> Iterator[tuple[Message, str]]:
    """What Unfold shows and Django's own catalogue has no translation for."""
    known = {(entry.msgctxt or "", entry.msgid) for path in _of_django() for entry in polib.mofile(str(path))}
    for path in sorted([*UNFOLD.glob("**/*.html"), *UNFOLD.glob("**/*.py")]):
        if not path.relative_to(UNFOLD).as_posix().startswith(UNUSED) and "unfold_crispy" not in path.parts:
            source = path.read_text(encoding="utf-8")
            nodes = ast.walk(ast.parse(source)) if path.suffix == ".py" else ()
            for message in in_python(nodes) if nodes else in_template(source):
                if (message.context, message.text) not in known:
                    yield message, "unfold"


def _of_django_in_another_form() -> Iterator[tuple[Message, str]]:
    """What Django's pages for staff say with 你: the hub says 您 throughout."""
    pages = [path for path in _of_django() if "contrib" in path.parts]
    for entry in (entry for path in pages for entry in polib.mofile(str(path))):
        if "你" in f"{entry.msgstr}{entry.msgstr_plural}":
            yield Message(entry.msgid, entry.msgid_plural or "", entry.msgctxt or ""), "django"


def _of_django() -> list[Path]:
    root = Path(django.__file__).parent
    folders = [root / "conf", *(root / "contrib" / name for name in ("admin", "auth"))]
    return [folder / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.mo" for folder in folders]


def write() -> None:
    """Bring the catalogue up to date: new texts empty, those that are gone left out; and compile it."""
    old = polib.pofile(str(PO)) if PO.exists() else polib.POFile()
    known = {(entry.msgid, entry.msgid_plural, entry.msgctxt or ""): entry for entry in old}
    new = polib.POFile(wrapwidth=118)
    new.metadata = {
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
        "Language": "zh_Hans",
        "Plural-Forms": "nplurals=1; plural=0;",
    }
    for message, place in sorted(wanted().items(), key=lambda item: (item[1], item[0].text)):
        entry = known.get((message.text, message.plural, message.context)) or _entry(message)
        entry.occurrences, entry.flags = [(place, "")], ["python-format"] if message.placeholders else []
        new.append(entry)
    FOLDER.mkdir(parents=True, exist_ok=True)
    new.save(str(PO))
    new.save_as_mofile(str(MO))
    # Words of Django and Unfold that the hub calls otherwise, in English too.
    polib.pofile(str(ENGLISH)).save_as_mofile(str(ENGLISH.with_suffix(".mo")))


def _entry(message: Message) -> polib.POEntry:
    plural = {"msgid_plural": message.plural, "msgstr_plural": {0: ""}} if message.plural else {}
    return polib.POEntry(msgid=message.text, msgctxt=message.context or None, **plural)


if __name__ == "__main__":
    write()
