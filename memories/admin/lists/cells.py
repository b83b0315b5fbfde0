"""Cells of the lists. All data passes format_html, which escapes it."""

from collections.abc import Sequence
from datetime import datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memories.admin.cases.wording import DaysLeft
from memories.admin.site import template_tags
from memories.admin.site.template_tags import ago, display_name, percent
from memories.models import EndUser

CLIP = 300


def moment(value: datetime | None) -> SafeString | str:
    return ago(value)


def day(value: datetime) -> SafeString:
    """The date, for what has no time of day."""
    return template_tags.day(value)


def statement(text: str) -> SafeString:
    """The beginning of a text on at most two lines."""
    return format_html('<span class="hub-statement">{}</span>', text if len(text) <= CLIP else f"{text[:CLIP]}…")


def wrapped(text: str) -> SafeString:
    """A few words on as many lines as they need."""
    return format_html('<span class="hub-words">{}</span>', text)


def person(end_user: EndUser) -> SafeString:
    """The name with the caller's id below, or the id alone."""
    return two_lines(display_name(end_user), end_user.external_id if end_user.display_name else "")


def two_lines(main: str, below: str) -> SafeString:
    if not below:
        return format_html('<span class="hub-cell">{}</span>', main)
    return format_html('<span class="hub-cell">{}<small>{}</small></span>', main, below)


def explained(main: str, text: str) -> SafeString:
    """A name with a sentence below it, on as many lines as it needs."""
    return format_html('<span class="hub-cell hub-whole">{}<small>{}</small></span>', main, text)


def linked(main: str, below: str, page: str | None) -> SafeString:
    """Two lines. The first is a link if there is a page."""
    if not page:
        return two_lines(main, below)
    return format_html('<span class="hub-cell"><a href="{}">{}</a><small>{}</small></span>', page, main, below)


def folded(main: str, label: str, rows: Sequence[tuple[str, object, str | None]]) -> SafeString:
    """A text, and below it rows of name, value and perhaps an address, behind a label that opens them."""
    shown = format_html_join("", "<dt>{}</dt><dd>{}</dd>", ((name, _value(text, page)) for name, text, page in rows))
    return format_html(
        '<span class="hub-words hub-told">{}</span>'
        '<details class="hub-folded"><summary>{}</summary><dl>{}</dl></details>',
        main,
        label,
        shown,
    )


def _value(text: object, page: str | None) -> SafeString:
    return format_html('<a href="{}">{}</a>', page, text) if page else format_html("{}", text)


def days_left(left: DaysLeft) -> SafeString:
    """The time left for a case: words, an icon and a colour."""
    return format_html(
        '<span class="hub-left hub-left-{}">'
        '<span class="material-symbols-outlined" aria-hidden="true">{}</span>{}</span>',
        left.level,
        left.icon,
        left.text,
    )


def meter(share: float) -> SafeString:
    """A share of 1 as a percentage and a bar."""
    return format_html(
        '<span class="hub-measure"><span>{}</span><progress max="1" value="{}"></progress></span>',
        percent(share),
        f"{share:.3f}",
    )
