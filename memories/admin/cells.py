"""Cells of the lists: every piece of data goes through format_html, which escapes it."""

from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString

from memories.admin.case_wording import DaysLeft
from memories.admin.template_tags import ago, percent, who
from memories.models import EndUser

CLIP = 300


def moment(value: datetime | None) -> SafeString | str:
    return ago(value)


def statement(text: str) -> SafeString:
    """The beginning of a text, shown on at most two lines."""
    clipped = text if len(text) <= CLIP else f"{text[:CLIP]}…"
    return format_html('<span class="hub-statement">{}</span>', clipped)


def wrapped(text: str) -> SafeString:
    """A few words on as many lines as they need."""
    return format_html('<span class="hub-words">{}</span>', text)


def person(end_user: EndUser) -> SafeString:
    """The name, and the caller's id below it when there is a name."""
    below = end_user.external_id if end_user.display_name else ""
    return two_lines(who(end_user), below)


def two_lines(main: str, below: str) -> SafeString:
    if not below:
        return format_html('<span class="hub-cell">{}</span>', main)
    return format_html('<span class="hub-cell">{}<small>{}</small></span>', main, below)


def linked(main: str, below: str, page: str | None) -> SafeString:
    """Two lines, the first of them a link where there is a page to go to."""
    if not page:
        return two_lines(main, below)
    return format_html('<span class="hub-cell"><a href="{}">{}</a><small>{}</small></span>', page, main, below)


def days_left(left: DaysLeft) -> SafeString:
    """How long a case has, told by its words and an icon, and in colour besides."""
    return format_html(
        '<span class="hub-left hub-left-{}">'
        '<span class="material-symbols-outlined" aria-hidden="true">{}</span>{}</span>',
        left.level,
        left.icon,
        left.text,
    )


def meter(share: float) -> SafeString:
    """A share of 1 as a figure and a bar."""
    return format_html(
        '<span class="hub-measure"><span>{}</span><progress max="1" value="{}"></progress></span>',
        percent(share),
        f"{share:.3f}",
    )
