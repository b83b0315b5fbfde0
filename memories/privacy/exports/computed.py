"""Fields of an export that are no columns: what each says, of which JSON type it is, and how it is made of a row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memories.models import ActorKind, EndUser, Source

_INFERRED = (Source.IMPLICIT, Source.SYSTEM)


@dataclass(frozen=True)
class Subject:
    """Whom an export is of, under which profile; `names` are all ids that lead to them."""

    person: EndUser
    profile: str
    names: frozenset[str]


@dataclass(frozen=True)
class Computed:
    says: str
    schema: Mapping[str, Any]
    of: Callable[[Any, Subject], Any]


def subject_of(person: EndUser, profile: str) -> Subject:
    return Subject(person, profile, frozenset(EndUser.objects.behind(person).values_list("external_id", flat=True)))


def _own(ids: list[str], subject: Subject) -> list[str]:
    return [one for one in ids if one in subject.names]


def _others(ids: list[str], subject: Subject) -> int:
    return len(ids) - len(_own(ids, subject))


def _state(state: dict[str, Any], subject: Subject) -> dict[str, Any]:
    """A snapshot of a fact (audit.snapshot) without the ids of other people."""
    if "allowed_users" not in state:
        return state
    ids = state["allowed_users"]
    return {**state, "allowed_users": _own(ids, subject), "allowed_others": _others(ids, subject)}


def _run(row: Any, _: Subject) -> str | None:
    return row.actor_id if row.actor_kind == ActorKind.RUN else None


_IDS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
_SNAPSHOT: Mapping[str, Any] = {"type": "object"}

# (store, name of the field) → how it is made.
COMPUTED: Mapping[tuple[str, str], Computed] = {
    ("memories.Fact", "inferred"): Computed(
        "Concluded from what was said; false: somebody said it.",
        {"type": "boolean"},
        lambda row, _: row.source in _INFERRED,
    ),
    ("memories.Fact", "allowed_users"): Computed(
        "Your own ids among those that may see it; empty with no `allowed_others`: it is not limited to anybody.",
        _IDS,
        lambda row, subject: _own(row.allowed_users, subject),
    ),
    ("memories.Fact", "allowed_others"): Computed(
        "How many other people may see it; who they are is theirs.",
        {"type": "integer"},
        lambda row, subject: _others(row.allowed_users, subject),
    ),
    ("memories.FactEvidence", "said_by"): Computed(
        "Who said it: user is you, assistant the assistant, tool a program that it asked.",
        {"type": "string"},
        lambda row, _: row.turn.role,
    ),
    ("memories.FactRevision", "run"): Computed(
        "The run that made the change, if one did.", {"type": ["string", "null"]}, _run
    ),
    ("memories.FactRevision", "before"): Computed(
        "The changed fields as they were.", _SNAPSHOT, lambda row, subject: _state(row.before, subject)
    ),
    ("memories.FactRevision", "after"): Computed(
        "The whole fact after the change.", _SNAPSHOT, lambda row, subject: _state(row.after, subject)
    ),
    ("memories.ProfileRevision", "run"): Computed(
        "The run that made the change, if one did.", {"type": ["string", "null"]}, _run
    ),
    **{
        (f"memories.{kind}Vector", "model"): Computed(
            "The model that made the numbers.", {"type": "string"}, lambda row, _: row.space.model
        )
        for kind in ("Turn", "Fact", "Episode")
    },
}
