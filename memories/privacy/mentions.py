"""What other people said or have that names a person: counted for the preview and the receipt, never deleted."""

import re
from typing import Any

from django.db.models import Q, QuerySet, TextField
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
    """Place (`memories.Turn.content`) → rows of the tenant's other people in which an id of this person is a word."""
    people = EndUser.objects.behind(person)
    names = [name for name in people.values_list("external_id", flat=True) if len(name) >= SHORTEST]
    found = {
        f"{model._meta.label}.{field}": _naming(
            model._default_manager.filter(**{f"{owner}__tenant" if owner != "pk" else "tenant": person.tenant_id})
            .exclude(**{f"{owner}__in": people}),
            field,
            names,
        ).count()
        for model, (owner, fields) in SAID.items()
        for field in fields
    }  # fmt: skip
    return {place: count for place, count in found.items() if count}


def _naming(rows: QuerySet[Any], field: str, names: list[str]) -> QuerySet[Any]:
    """Those whose field has one of the names between two signs that are no letters or digits."""
    words = Q(pk__in=[])
    for name in names:
        # Looking for the text first spares most rows the regular expression.
        words |= Q(words__contains=name, words__regex=_word(name))
    named: QuerySet[Any] = rows.annotate(words=Cast(field, TextField())).filter(words)
    return named


def _word(name: str) -> str:
    """As a word of its own; a Chinese sentence leaves no space around what it names."""
    before = "(^|[^0-9A-Za-z])" if name[0].isascii() and name[0].isalnum() else ""
    after = "([^0-9A-Za-z]|$)" if name[-1].isascii() and name[-1].isalnum() else ""
    return f"{before}{re.escape(name)}{after}"
