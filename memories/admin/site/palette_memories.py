"""What the palette finds in memories: facts, episodes, turns and files that hold the words, newest first.

Each kind is looked through in one bounded statement over its newest rows. Where it shows what people said, the audit
trail says so, without the words, as for the page "What was said".
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Substr
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from memories import audit, models
from memories.admin.access.tenant_scope import tenants_of, within
from memories.admin.recall import turn_search
from memories.admin.site.page import actor_of, url_of
from memories.admin.site.template_tags import display_name, turn_page
from memories.models.ids import parse_uuid

# From so many letters on; a character of Chinese says more than a letter.
SHORTEST, SHORTEST_CHINESE = 3, 2
MOST_WORDS = 6
# Of each kind so many rows, the newest, are looked through, and so much of each text.
LOOKED_THROUGH = 10_000
CLIP = 4_000
# Around what was found.
_BEFORE, _SHOWN = 30, 110
# In the session: when the trail last said that turns were shown.
NOTED_AT, NOTED_FOR = "said_noted_at", 60


class FoundMemory(NamedTuple):
    link: str
    text: str
    kind: str
    icon: str


class _Place(NamedTuple):
    """Memories of a model: its text, how many are shown, and which permission it takes."""

    model: type[Model]
    field: str
    most: int
    icon: str
    permission: str


_PLACES = (
    _Place(models.Fact, "content", 5, "lightbulb", "memories.view_fact"),
    _Place(models.Episode, "summary", 3, "auto_stories", "memories.view_episode"),
    _Place(models.MemoryFile, "content", 3, "description", "memories.view_memoryfile"),
    _Place(models.Turn, "content", 5, "forum", turn_search.MAY[0]),
)


def is_enough(words: str) -> bool:
    """Whether so many letters are looked for in memories. A record's UUID is found otherwise."""
    return len(words) >= (SHORTEST if words.isascii() else SHORTEST_CHINESE) and parse_uuid(words) is None


def is_word(words: str) -> bool:
    """Whether lists can be searched for it. A Chinese word of one letter is in too many memories for the palette."""
    return is_enough(words) or (not words.isascii() and parse_uuid(words) is None)


def memories_of(request: HttpRequest, words: str, *, now: datetime) -> Iterator[FoundMemory]:
    """The memories that hold all of the words, as far as the operator may see them."""
    terms = words.split()[:MOST_WORDS]
    may_see_people = request.user.has_perm("memories.view_enduser")
    for place in _PLACES:
        if request.user.has_perm(place.permission):
            rows = list(_rows(place, within(request.user, place.model._default_manager.all()), terms)[: place.most])
            if rows and place.model is models.Turn:
                _note(request, rows, now=now)
            for row in rows:
                whose = display_name(row.end_user) if may_see_people else str(row.tenant)
                start = str(row.start)
                text = excerpt(f"{row.path}: {start}" if isinstance(row, models.MemoryFile) else start, terms)
                yield FoundMemory(_link_of(row), text, f"{_kind_of(row)} · {whose}", place.icon)


def searches_of(request: HttpRequest, words: str) -> dict[str, Any]:
    """Where to look further: the list of facts with the words, and the form that searches what was said."""
    found: dict[str, Any] = {}
    if request.user.has_perm("memories.view_fact"):
        found["facts"] = f"{reverse('admin:memories_fact_changelist')}?{urlencode({'q': words})}"
    if request.user.has_perms(turn_search.MAY):
        chosen = getattr(request.user, "tenant_in_view", None)
        tenants = [chosen] if chosen else list(tenants_of(request.user)[:2])
        found |= {"said": True, "tenant": tenants[0] if len(tenants) == 1 else None}
    return found


def excerpt(text: str, terms: Sequence[str]) -> str:
    """The part of the text, on one line, that begins a little before the first of the terms."""
    line = " ".join(text.split())
    # Folding a text can change its length, so the place is looked for in the text itself.
    found = re.search(re.escape(terms[0]), line, re.IGNORECASE) if terms else None
    start = max(0, found.start() - _BEFORE) if found else 0
    start = line.rfind(" ", 0, start) + 1 if start and line.rfind(" ", 0, start) > start - 15 else start
    return ("…" if start else "") + line[start : start + _SHOWN] + ("…" if len(line) > start + _SHOWN else "")


def _rows(place: _Place, rows: QuerySet[Any], terms: Sequence[str]) -> QuerySet[Any]:
    if place.model is models.Turn:
        rows = rows.searchable()  # type: ignore[attr-defined]  # of turns
    # Ids grow with time.
    newest = rows.order_by("-pk").values("pk")[:LOOKED_THROUGH]
    found: QuerySet[Any] = place.model._default_manager.filter(pk__in=newest).annotate(
        start=Substr(place.field, 1, CLIP)
    )
    wanted = Q()
    for term in terms:
        is_in_path = Q(path__icontains=term) if place.model is models.MemoryFile else Q()
        wanted &= Q(start__icontains=term) | is_in_path
    # A file has its tenant and person, as all of these have.
    found = found.filter(wanted).select_related("end_user", "tenant")
    return found.defer(place.field).order_by("-pk")


def _link_of(row: Any) -> str:
    if not isinstance(row, models.Turn):
        return url_of(row)
    session = reverse("admin:memories_session_change", args=[row.session_id])
    return f"{session}?page={turn_page(row.number)}#turn-{row.number}"


def _kind_of(row: Any) -> str:
    if isinstance(row, models.Turn):
        return _("What was said")
    name = str(row._meta.verbose_name)
    is_live = getattr(row, "status", "active") == "active"
    return name if is_live else f"{name}, {row.get_status_display()}"


def _note(request: HttpRequest, turns: Sequence[models.Turn], *, now: datetime) -> None:
    """Tell the trail, for each tenant and once a minute: somebody who types asks several times."""
    noted = request.session.get(NOTED_AT, {})
    for tenant in {turn.tenant_id: turn.tenant for turn in turns}.values():
        if now.timestamp() - noted.get(str(tenant.pk), 0) >= NOTED_FOR:
            noted[str(tenant.pk)] = now.timestamp()
            request.session[NOTED_AT] = noted
            audit.record(
                actor=actor_of(request),
                verb="search",
                target=tenant,
                object_id=tenant.pk,
                tenant=tenant,
                now=now,
                counts={"found": sum(turn.tenant_id == tenant.pk for turn in turns)},
            )
