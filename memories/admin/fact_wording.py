"""What a revision changed beside the text, in words: the names of fields, and their values as they are read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin.template_tags import percent
from memories.admin.wording import day_of
from memories.audit import REVISED_MOMENTS
from memories.models import Category, FactRevision, MemoryScope, Source, Status, Trust

NAMES = {
    "category": gettext_lazy("category"),
    "key": gettext_lazy("key"),
    "value": gettext_lazy("value"),
    "confidence": gettext_lazy("confidence"),
    "importance": gettext_lazy("importance"),
    "tags": gettext_lazy("tags"),
    "raw": gettext_lazy("quote"),
    "source": gettext_lazy("source"),
    "source_error": gettext_lazy("what was wrong"),
    "trust": gettext_lazy("trust"),
    "structured": gettext_lazy("structured data"),
    "status": gettext_lazy("status"),
    "flags": gettext_lazy("flags"),
    "pinned": gettext_lazy("pinned"),
    "locked": gettext_lazy("locked"),
    "binding": gettext_lazy("operator's word"),
    "scope": gettext_lazy("scope"),
    "agent_id": gettext_lazy("agent"),
    "allowed_users": gettext_lazy("users"),
    "allowed_roles": gettext_lazy("roles"),
    "mentions": gettext_lazy("mentions"),
    "valid_to": gettext_lazy("held until"),
    "expires_at": gettext_lazy("expires"),
}
# Told by the text's own diff, by the status, or by the relations.
_TOLD_ELSEWHERE = ("content", "stated_confidence", "last_confirmed_at", "trashed_at", "superseded_by")
_CHOICES: Mapping[str, Any] = {
    "category": Category,
    "status": Status,
    "trust": Trust,
    "source": Source,
    "scope": MemoryScope,
}
_LONGEST = 80


@dataclass(frozen=True)
class FieldChange:
    """One field of a fact that a revision changed; an empty text stands for nothing."""

    name: str
    was: str
    now: str


def changes_of(revision: FactRevision) -> list[FieldChange]:
    """What it changed beside the text, by name."""
    names = [name for name in NAMES if name in revision.before and name not in _TOLD_ELSEWHERE]
    return [
        FieldChange(str(NAMES[name]), _told(name, revision.before[name]), _told(name, revision.after.get(name)))
        for name in names
    ]


def _told(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if value in (None, "", [], {}):
        return _("none")
    if name in _CHOICES and value in _CHOICES[name].values:
        return str(_CHOICES[name](value).label)
    if name in REVISED_MOMENTS:
        return day_of(datetime.fromisoformat(value))
    if name in ("confidence", "importance"):
        return percent(value)
    return _clipped(", ".join(map(str, value)) if isinstance(value, list) else _plain(value))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
