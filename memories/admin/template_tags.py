"""The template library `hub`: times, shares and states as our pages show them."""

import json
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

from django import template
from django.db.models import Model
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from memories.admin import reason_words, run_words, wording
from memories.admin.naming import called
from memories.conf.kinds import Number
from memories.models import EndUser

register = template.Library()

TURNS_SHOWN = 50


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """A <time> that reads "5 min ago" and shows the exact moment on hover; a dash for none."""
    if moment is None:
        return "–"
    text, exact = wording.relative(moment, now=timezone.now()), wording.exact(moment)
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, text)


@register.filter
def day(moment: datetime) -> SafeString:
    """A <time> with the date, and the exact moment on hover."""
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', moment.isoformat(), wording.exact(moment), wording.day_of(moment)
    )


@register.filter
def day_month(day: date) -> str:
    """A day without its year."""
    return wording.day_month(day)


@register.filter
def number(value: int | None) -> str:
    """A count with its thousands apart: 12,345."""
    return f"{value or 0:,}"


@register.filter
def span(of: Number) -> str:
    """Which values a number of the rules takes: "1–300 s", "10–5,000 facts, 0: no bound"."""
    return wording.span_of(of)


@register.filter
def beside(values: Iterable[Any], others: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Each of the others with its value."""
    return list(zip(others, values, strict=True))


@register.filter
def clock(moment: datetime) -> SafeString:
    """A <time> with the hour and minute, and the exact moment on hover: where the day is said already."""
    shown = f"{timezone.localtime(moment):%H:%M}"
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), wording.exact(moment), shown)


@register.filter
def exact(moment: datetime) -> str:
    """Like 3 Mar 2027, 09:12:05 UTC, for a title."""
    return wording.exact(moment)


@register.filter
def percent(share: float) -> str:
    """0.954 → "95 %"."""
    return f"{share * 100:.0f} %"


@register.filter
def kind(state: str) -> str:
    return wording.kind_of(state)


@register.filter
def work(state: str) -> str:
    """The name of a state of waiting work."""
    return str(wording.WORK.get(state, state))


@register.filter
def verb(name: str) -> str:
    return wording.verb_of(name)


@register.filter
def failure(code: str) -> str:
    return wording.explain_failure(code)


@register.filter
def who(person: EndUser) -> str:
    """What an operator knows a person by: the name, else the caller's id."""
    return person.display_name or person.external_id


@register.filter
def counted(code: str) -> str:
    """What a run counted, in words."""
    return run_words.said_of(code)


@register.filter
def reason(text: str) -> str:
    """Why something was changed, in the reader's language where a job said it."""
    return reason_words.reason_of(text)


@register.filter
def crumb(title: object) -> str:
    """A part of the way to a page: a record as it is called, else a word with a capital letter."""
    return called(title) if isinstance(title, Model) else str(capfirst(str(title)))


@register.filter
def turn_page(number: int) -> int:
    """The page of a session on which the turn of this number stands."""
    return (max(number, 1) - 1) // TURNS_SHOWN + 1


@register.filter
def pretty(value: object) -> str:
    """JSON for reading; the template escapes it."""
    return json.dumps(value, ensure_ascii=False, indent=2)
