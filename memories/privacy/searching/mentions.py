"""Rows of other people that mention a person: counted for the preview of a case, never deleted."""

import re
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Count, Q, QuerySet, TextField
from django.db.models.functions import Cast

from memories.models import EndUser, Episode, Fact, FactRevision, ProfileRevision, ProfileSection, Turn, WorkingMemory

# Model → the path to its owner, and the fields in which somebody may be named.
_FIELDS = {
    Turn: ("end_user", ("content", "parts", "name", "tool_calls", "metadata")),
    Fact: (
        "end_user",
        ("content", "raw", "value", "structured", "triples", "document", "source_error", "allowed_users"),
    ),
    FactRevision: ("fact__end_user", ("after", "reason")),
    Episode: ("end_user", ("summary", "key_topics", "actions_taken", "outcomes")),
    ProfileSection: ("end_user", ("summary",)),
    ProfileRevision: ("end_user", ("after", "reason")),
    WorkingMemory: ("session__end_user", ("summary",)),
    EndUser: ("pk", ("metadata",)),
}
# Shorter ids ("1", "bob") are words of any language.
SHORTEST = 4


def mentions_of(person: EndUser) -> dict[str, int]:
    """Place (`memories.Turn.content`) → rows of the tenant's other people in which an id of this person is a word.

    Each table is read once.
    """
    people = EndUser.objects.behind(person)
    names = [name for name in people.values_list("external_id", flat=True) if len(name) >= SHORTEST]
    found: dict[str, int] = {}
    for model, (owner, fields) in _FIELDS.items() if names else ():
        tenant = "tenant" if owner == "pk" else f"{owner}__tenant"
        others = model._default_manager.filter(**{tenant: person.tenant_id}).exclude(**{f"{owner}__in": people})
        counts = _naming(others, fields, names)
        found |= {f"{model._meta.label}.{field}": count for field, count in counts.items() if count}
    return found


def _naming(rows: QuerySet[Any], fields: Sequence[str], names: Sequence[str]) -> dict[str, int]:
    """Field → rows that have one of the names there as a word."""
    texts = {f"text_of_{field}": Cast(field, TextField()) for field in fields}
    counted = {field: Count("pk", filter=_any(f"text_of_{field}", names)) for field in fields}
    counts: dict[str, int] = rows.annotate(**texts).aggregate(**{f"count_{name}": one for name, one in counted.items()})
    return {name.removeprefix("count_"): count for name, count in counts.items()}


def _any(text: str, names: Sequence[str]) -> Q:
    # LIKE comes first: most rows need no regular expression.
    return reduce(or_, (Q(**{f"{text}__contains": name, f"{text}__regex": _word(name)}) for name in names))


def _word(name: str) -> str:
    """The name between characters that are no letters or digits; Chinese leaves no space around a name."""
    before = "(^|[^0-9A-Za-z])" if name[0].isascii() and name[0].isalnum() else ""
    after = "([^0-9A-Za-z]|$)" if name[-1].isascii() and name[-1].isalnum() else ""
    return f"{before}{re.escape(name)}{after}"
