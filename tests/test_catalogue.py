"""The catalogue holds every text that a page can show, translated; what people read is marked wherever it stands."""

import ast
from collections.abc import Callable
from pathlib import Path

import polib  # type: ignore[import-untyped]
import pytest
from django.conf import settings
from django.utils.translation import gettext, ngettext, override, pgettext

from memories import exceptions
from tests import catalogue, unmarked
from tests.catalogue import Message
from tests.each import each

ROOT = catalogue.ROOT
TEMPLATES, MODULES = sorted(ROOT.glob("templates/**/*.html")), sorted(ROOT.glob("memories/admin/**/*.py"))


@pytest.fixture(scope="module")
def entries() -> dict[Message, polib.POEntry]:
    found = polib.pofile(str(catalogue.PO))
    assert not found.obsolete_entries()
    return {Message(entry.msgid, entry.msgid_plural, entry.msgctxt or ""): entry for entry in found}


def test_every_text_is_in_the_catalogue_and_no_other(entries: dict[Message, polib.POEntry]) -> None:
    """Otherwise: `python -m tests.catalogue`, and translate what it added."""
    wanted = catalogue.wanted()
    assert len(wanted) > 300
    assert sorted(message.text for message in wanted.keys() - entries.keys()) == []
    assert sorted(message.text for message in entries.keys() - wanted.keys()) == []


def test_every_text_is_translated(entries: dict[Message, polib.POEntry]) -> None:
    empty = [entry.msgid for entry in entries.values() if not (entry.msgstr or entry.msgstr_plural.get(0))]
    assert empty == []
    assert [entry.msgid for entry in entries.values() if entry.fuzzy] == []


def test_a_translation_says_the_same_of_the_same_things(entries: dict[Message, polib.POEntry]) -> None:
    for message, entry in entries.items():
        told = Message(entry.msgstr or entry.msgstr_plural[0])
        assert told.placeholders <= message.placeholders, message.text
        # One may be left out where the plural says it: "one fact", "2 facts".
        assert message.plural or told.placeholders == message.placeholders, message.text
        # HTML of ours stays as it is, and nobody brings more.
        assert sorted(told.tags) == sorted(message.tags), message.text


def test_what_is_served_is_what_is_written() -> None:
    def told(entry: polib.POEntry) -> tuple[str, str, str, str]:
        return entry.msgctxt or "", entry.msgid, entry.msgid_plural, entry.msgstr or entry.msgstr_plural[0]

    compiled = polib.mofile(str(catalogue.MO))
    assert sorted(map(told, compiled)) == sorted(map(told, polib.pofile(str(catalogue.PO))))


@each(("found_in", "paths"), [(unmarked.in_template, TEMPLATES), (unmarked.in_module, MODULES)])
def test_the_texts_of_templates_and_modules_are_marked(found_in: Callable[[str], list[str]], paths: list[Path]) -> None:
    assert len(paths) > 100
    found = {str(path.relative_to(ROOT)): found_in(path.read_text(encoding="utf-8")) for path in paths}
    assert {name: texts for name, texts in found.items() if texts} == {}


@each(
    "template",
    [
        "<p>Not marked</p>",
        '<a aria-label="Close">×</a>',
        '{% include "label.html" with text="Pinned" %}',
        '{{ name|default:"nobody" }}',
        '{{ count }} fact{{ count|pluralize }}{% translate "Fine" %} and more',
    ],
)
def test_an_unmarked_text_of_a_template_is_found(template: str) -> None:
    assert unmarked.in_template(template)


@each(
    "template",
    [
        '<p>{% translate "Marked" %}</p>',
        "{% blocktranslate count n=n %}{{ n }} fact{% plural %}{{ n }} facts{% endblocktranslate %}",
        '<span class="material-symbols-outlined">close</span><code>OPENAI_API_KEY</code> · 12',
        '{% translate "Pinned" as pinned %}{% include "label.html" with text=pinned type="danger" %}',
        '{{ name|default:_("nobody") }}{# a comment #}{% comment %}another{% endcomment %}',
    ],
)
def test_a_marked_text_of_a_template_is_passed_over(template: str) -> None:
    assert unmarked.in_template(template) == []


@each(
    ("source", "found"),
    [
        ('LineField(label="Why")', ["Why"]),
        ('LineField(label=_("Why"), name="Why")', []),
        ('messages.success(request, "It is done.")', ["It is done."]),
        ('raise ValidationError(f"These are {n} lines.")', ["These are  lines."]),
        ('empty_title = "Nothing yet"', ["Nothing yet"]),
        ('empty_title: str = _("Nothing yet")', []),
        ('def done(): return f"{fact} is saved."', [" is saved."]),
        ('def done(): return _("%(fact)s is saved.") % {"fact": fact}', []),
        ('context = {"title": "Forgetting", "state": "Active"}', ["Forgetting"]),
    ],
)
def test_unmarked_texts_of_a_module(source: str, found: list[str]) -> None:
    assert unmarked.in_module(source) == found


def test_marks_are_read_as_django_reads_them() -> None:
    source = '_("one " "line"); ngettext("%(n)d a", "%(n)d b", n); pgettext("date", "j M"); other("x"); _(name)'
    assert set(catalogue.in_python(ast.walk(ast.parse(source)))) == {
        Message("one line"), Message("%(n)d a", "%(n)d b"), Message("j M", "", "date"),
    }  # fmt: skip
    template = """{% load i18n %}{% translate "It's (one)" %}{{ x|default:_("none") }}
        {% blocktranslate count n=n %}{{ n }} a{% plural %}{{ n }} b{% endblocktranslate %}"""
    assert set(catalogue.in_template(template)) == {
        Message("It's (one)"),
        Message("none"),
        Message("%(n)s a", "%(n)s b"),
    }


def test_pages_find_the_translations(entries: dict[Message, polib.POEntry]) -> None:
    with override("zh-hans"):
        for message, entry in entries.items():
            if message.plural:
                assert ngettext(message.text, message.plural, 2) == entry.msgstr_plural[0]
            elif message.context:
                assert pgettext(message.context, message.text) == entry.msgstr
            else:
                assert gettext(message.text) == entry.msgstr
        assert exceptions.DecayRunning().detail == entries[Message(exceptions.DecayRunning.__doc__ or "")].msgstr
    assert exceptions.DecayRunning().detail == exceptions.DecayRunning.__doc__


def test_the_catalogue_is_where_the_settings_say() -> None:
    assert Path(settings.LOCALE_PATHS[0]) in catalogue.PO.parents
