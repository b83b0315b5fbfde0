"""The template library `hub`: times, shares, states and names as pages show them."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django import template
from django.apps import apps
from django.contrib.messages.storage.base import Message
from django.db.models import Model
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from memories.admin.runs import wording as run_words
from memories.admin.site import wording
from memories.admin.site.mentions import with_names
from memories.admin.site.naming import called, crumb_of, one_of
from memories.admin.site.segments import Segment, segments_of
from memories.content_policy.categories import title_of
from memories.kinds import PLAIN
from memories.models import EndUser, Turn
from memories.text.injection import flagged_turns

register = template.Library()
register.filter("counted", run_words.label_of)
register.filter("day_month", wording.day_month)
register.filter("exact", wording.exact)
register.filter("failure", wording.explain_failure)
register.filter("kind", wording.kind_of)
register.filter("one_of", one_of)
register.filter("reason", wording.reason_of)
register.filter("span", wording.span_of)
register.filter("topic", title_of)
register.filter("verb", wording.verb_of)

TURNS_SHOWN = 50
# The tag of a message that offers an undo, before its address.
UNDO_TAG = "undo="


def _time(moment: datetime, text: str) -> SafeString:
    """A <time> that shows the exact moment on hover."""
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), wording.exact(moment), text)


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """A <time> like "5 min ago"; a dash for none."""
    return "–" if moment is None else _time(moment, wording.relative(moment, now=timezone.now()))


@register.filter
def day(moment: datetime) -> SafeString:
    """A <time> with the date."""
    return _time(moment, wording.day_of(moment))


@register.filter
def clock(moment: datetime) -> SafeString:
    """A <time> with hour and minute, for places that show the date already."""
    return _time(moment, f"{timezone.localtime(moment):%H:%M}")


@register.filter
def exactly(moment: datetime) -> str:
    """The moment with its day, time and zone, for places without markup."""
    return wording.exact(moment)


@register.filter
def of_plain_kinds(counts: Mapping[str, int]) -> list[tuple[str, Promise, int]]:
    """(name, heading, count) of the memories of each plain kind that go to the trash (memories/kinds/kind.py)."""
    return [(kind.plural, kind.plain.trashed, counts.get(kind.plural, 0)) for kind in PLAIN if kind.plain]


@register.filter
def number(value: int | None) -> str:
    """A count with thousands separators: 12,345."""
    return f"{value or 0:,}"


@register.filter
def percent(share: float) -> str:
    """0.954 → "95 %", which no line breaks."""
    return f"{share * 100:.0f}\N{NO-BREAK SPACE}%"


@register.filter
def beside(values: Iterable[Any], others: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Each of the others with its value."""
    return list(zip(others, values, strict=True))


@register.filter
def work(state: str) -> str:
    """The name of a state of queued work."""
    return str(wording.WORK.get(state, state))


@register.filter
def display_name(person: EndUser) -> str:
    """The name of a person, else the caller's id."""
    return person.display_name or person.external_id


@register.filter
def without_app(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Breadcrumbs without the app, which says nothing of where a page is: "Memory" is no part of the menu's Access."""
    named = {name for app in apps.get_app_configs() for name in (app.verbose_name, app.label)}
    return parts[1:] if len(parts) > 1 and parts[0]["title"] in named else parts


@register.filter
def crumb(title: object) -> str:
    """A breadcrumb: the name of a record, or a capitalized word."""
    return (
        getattr(title, "page_name", None) or called(title)
        if isinstance(title, Model)
        else str(capfirst(crumb_of(title)))
    )


@register.filter
def speaks_to_model(turn: Turn) -> bool:
    """Whether contexts leave the turn out. A turn without a verdict is judged by the beginning that the page shows."""
    beginning: str = getattr(turn, "start", "")
    return flagged_turns.judged(turn.speaker, beginning) if turn.flagged is None else turn.flagged


@register.filter
def whose_words(turn: Turn) -> list[tuple[str, str]]:
    """Labels that say whose words a turn holds where its role does not, each with what it means."""
    return wording.whose_words(turn)


@register.filter
def in_parts(turn: Turn) -> list[Segment]:
    """The beginning of a turn's text that the page shows; what is not its author's own is marked "foreign"."""
    return segments_of(getattr(turn, "start", ""), turn.own)


@register.filter
def turn_page(number: int) -> int:
    """The page of a session that shows the turn with this number."""
    return (max(number, 1) - 1) // TURNS_SHOWN + 1


@register.filter
def pretty(value: object) -> str:
    """Indented JSON. The template escapes it."""
    return json.dumps(value, ensure_ascii=False, indent=2)


@register.simple_tag(takes_context=True)
def told(context: Any, message: Message | str) -> str:
    """The message with the names of the records that it is about."""
    return with_names(str(message), context["request"])


@register.filter
def undo_address(message: Message | str) -> str:
    """The address that takes back what the message says; empty if it offers none."""
    # A text stands there, too, where a page shows one like a message.
    tags = (getattr(message, "extra_tags", "") or "").split()
    return next((tag.removeprefix(UNDO_TAG) for tag in tags if tag.startswith(UNDO_TAG)), "")
