"""What other people said or have that names a person: counted for the preview and the receipt, never deleted."""

import re
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Count, Q, QuerySet, TextField
from django.db.models.functions import Cast

from memories.models import EndUser, Episode, Fact, FactRevision, ProfileRevision, ProfileSection, Turn, WorkingMemory

# Model → the way to whose it is, and the fields in which somebody may be named.
SAID = {
    Turn: ("end_user", ("content", "parts", "name", "tool_calls", "metadata")),
    Fact: ("end_user", ("content", "raw", "value", "structured", "source_error", "allowed_users")),
    FactRevision: ("fact__end_user", ("after", "reason")),
    Episode: ("end_user", ("summary", "key_topics", "actions_taken", "outcomes")),
    ProfileSection: ("end_user", ("summary",)),
    ProfileRevision: ("end_user", ("after", "reason")),
    WorkingMemory: ("session__end_user", ("summary",)),
    EndUser: ("pk", ("metadata",)),
}
# Shorter ids ("1", "bob") are words of any language: nobody could tell whom they mean.
SHORTEST = 4


def mentions_of(person: EndUser) -> dict[str, int]:
    """Place (`memories.Turn.content`) → rows of the tenant's other people in which an id of this person is a word.

    Reads what the tenant's people said, each table once.
    """
    people = EndUser.objects.behind(person)
    names = [name for name in people.values_list("external_id", flat=True) if len(name) >= SHORTEST]
    found: dict[str, int] = {}
    for model, (owner, fields) in SAID.items() if names else ():
        tenant = "tenant" if owner == "pk" else f"{owner}__tenant"
        others = model._default_manager.filter(**{tenant: person.tenant_id}).exclude(**{f"{owner}__in": people})
        counts = _naming(others, fields, names)
        found |= {f"{model._meta.label}.{field}": count for field, count in counts.items() if count}
    return found


def _naming(rows: QuerySet[Any], fields: Sequence[str], names: Sequence[str]) -> dict[str, int]:
    """Field → how many rows have one of the names there, between two signs that are no letters or digits."""
    texts = {f"text_of_{field}": Cast(field, TextField()) for field in fields}
    counted = {field: Count("pk", filter=_any(f"text_of_{field}", names)) for field in fields}
    counts: dict[str, int] = rows.annotate(**texts).aggregate(**{f"count_{name}": one for name, one in counted.items()})
    return {name.removeprefix("count_"): count for name, count in counts.items()}


def _any(text: str, names: Sequence[str]) -> Q:
    """Looking for the name first spares most rows the regular expression."""
    words = [Q(**{f"{text}__contains": name, f"{text}__regex": _word(name)}) for name in names]
    return reduce(or_, words)


def _word(name: str) -> str:
    """As a word of its own; a Chinese sentence leaves no space around what it names."""
    before = "(^|[^0-9A-Za-z])" if name[0].isascii() and name[0].isalnum() else ""
    after = "([^0-9A-Za-z]|$)" if name[-1].isascii() and name[-1].isalnum() else ""
    return f"{before}{re.escape(name)}{after}"
