"""Finds what people read and nobody marked for translation, in templates and in modules of the admin."""

import ast
import re
from collections.abc import Iterator
from html.parser import HTMLParser

from tests.catalogue import CALLS

_LETTERS = re.compile(r"[^\W\d_]{2,}")
# Texts of tags that are told elsewhere: translated ones, comments, and what becomes of variables.
_BLOCKS = re.compile(r"{%\s*(blocktrans(?:late)?|comment|verbatim)\b.*?{%\s*end\1\s*%}", re.DOTALL)
_TAG = re.compile(r"{%.*?%}|{{.*?}}|{#.*?#}", re.DOTALL)
# What a tag gives as a text of its own: with title="…", default:"…", pluralize:"…".
_GIVEN = re.compile(
    r"""(?:\b(?:title|text|label|submit|none|hint|heading|message)=|\|(?:default|default_if_none|pluralize|yesno):)"""
    r"""(?P<quote>["'])(?P<text>.*?)(?P=quote)"""
)
_READ = ("aria-label", "title", "placeholder", "alt", "data-label")
# Their text is a name or no text: icons, code, keys.
_NO_TEXT = ("code", "kbd", "script", "style")
# Names that are the same in every language.
SAME = frozenset({"Memory Hub", "Authorization: Bearer …", "Bearer"})


def in_template(source: str) -> list[str]:
    """The texts of a template that are not marked."""
    told = _Texts()
    plain = _BLOCKS.sub("", source)
    told.feed(_TAG.sub("", plain))
    tags = "".join(tag for tag in _TAG.findall(plain) if not tag.startswith(("{% translate", "{% trans ")))
    given = [found["text"] for found in _GIVEN.finditer(re.sub(r"_\((['\"]).*?\1\)", "", tags))]
    return [text for text in [*told.found, *given] if _LETTERS.search(text) and text not in SAME]


class _Texts(HTMLParser):
    """Texts between tags, and of attributes that are read out."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in ("img", "input", "link", "meta", "br", "line", "rect", "path", "circle"):
            icon = any(name == "class" and "material-symbols" in (value or "") for name, value in attrs)
            self.open.append(icon or tag in _NO_TEXT)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value.strip() for name, value in attrs if name in _READ and value and value.strip()]

    def handle_endtag(self, tag: str) -> None:
        if self.open:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip() and not any(self.open):
            self.found.append(data.strip())


# Where a module of the admin says something to people: names that are assigned or given, and calls with the argument.
_NAMES = frozenset(
    {
        "label",
        "help_text",
        "empty_label",
        "empty_title",
        "empty_hint",
        "search_help_text",
        "title",
        "heading",
        "purpose",
    }
)
_SAY = {"column": 0, "ValidationError": 0, "add_error": 1, "success": 1, "error": 1, "warning": 1, "info": 1}


def in_module(source: str) -> list[str]:
    """The sentences of a module that are not marked."""
    found = [text for place in _places(ast.parse(source)) for text in _texts(place)]
    return [text for text in found if _LETTERS.search(text) and text not in SAME]


def _places(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in _NAMES:
            yield node.value
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id in _NAMES for target in targets):
                yield node.value
        elif isinstance(node, ast.Dict):
            keys = zip(node.keys, node.values, strict=True)
            yield from (value for key, value in keys if isinstance(key, ast.Constant) and key.value in _NAMES)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield from node.args[_SAY[name] : _SAY[name] + 1] if name in _SAY else ()
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.JoinedStr):
            # What carry_out() says was done.
            yield node.value


def _texts(place: ast.expr) -> Iterator[str]:
    """Sentences in the expression, but for those that a call of gettext has; a word alone may be a name or a code."""
    if isinstance(place, ast.Call):
        name = place.func.attr if isinstance(place.func, ast.Attribute) else getattr(place.func, "id", "")
        if name in CALLS:
            return
    if isinstance(place, ast.Constant) and isinstance(place.value, str) and place.value[:1].isupper():
        yield place.value
    if isinstance(place, ast.JoinedStr):
        text = "".join(str(part.value) for part in place.values if isinstance(part, ast.Constant))
        yield from [text] if re.search(r"[^\W\d_]{2,} ", text) else []
        return
    for part in ast.iter_child_nodes(place):
        if isinstance(part, ast.expr):
            yield from _texts(part)
