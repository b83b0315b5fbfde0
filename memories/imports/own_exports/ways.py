"""What a list of an export is to the code that stores its rows, and how far a row is believed that names its writer."""

import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Model, Q

from memories import content_policy
from memories.content_policy import Road
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import WriteTrust
from memories.exceptions import ContentForbidden
from memories.files.passages import ChangedText
from memories.imports.raw_documents import RefusedDocumentError
from memories.imports.records import Note, ignore_rows
from memories.models import (
    ActorKind,
    EndUser,
    ImportedRow,
    Tenant,
    Trust,
)
from memories.trust import rank

OTHER_NAME, TAKEN, DANGLING, ONLY_A_HASH = "other_name", "taken", "dangling", "only_a_hash"
FOLLOWS, OF_GROUP = "made_anew", "groups"
_REVIEW = "review_needed"


class Here:
    """Where rows come to. `is_trusted`: staff made the export, so an operator's word in it stays one; otherwise nothing
    of it has more trust than the person. `taken`: old ids of sessions in whose place the person has another one.
    `group_facts`: those that nobody has told yet."""

    person: EndUser

    def __init__(self, tenant: Tenant, now: datetime, *, is_trusted: bool, note: Note = ignore_rows) -> None:
        self.tenant, self.now, self.is_trusted, self._note = tenant, now, is_trusted, note
        self.is_anybody = False
        self.taken: set[uuid.UUID] = set()
        self.group_facts: dict[uuid.UUID, Mapping[str, Any]] = {}
        self.left_out = Counter[str]()
        # Facts that an operator has to decide about here.
        self.waiting = 0

    def known(self, model: Any, olds: Any) -> dict[uuid.UUID, uuid.UUID]:
        raise NotImplementedError

    def note(self, *rows: ImportedRow) -> None:
        """Tell that the transaction made these of the person."""
        for one in rows:
            one.tenant_id, one.end_user_id = self.tenant.pk, self.person.pk
        self._note(rows)


class Row(NamedTuple):
    """A row of the export, and what is made of it."""

    old: uuid.UUID
    made: Any
    given: Mapping[str, Any]


Given = Mapping[str, Any]


def _nothing(*_: Any) -> None:
    """Nothing is peculiar to it."""


def noted_as(kind: ImportedRow.Kind) -> Callable[[Sequence[Row]], list[ImportedRow]]:
    """Each row by itself, with the version that it has."""
    return lambda rows: [
        ImportedRow(kind=kind, row=row.made.pk, last=getattr(row.made, "version", None) or 0) for row in rows
    ]


@dataclass(frozen=True)
class ListStrategy:
    """How the rows of a list come in. `once`: columns that no two rows of a person have alike, among those that
    `is_once` and `among` select. `noted`: by what an import knows them again. `parents` and `loose`: columns that name
    rows, which must be there, or may. `complete` sets what follows, `after` stores what belongs to new rows, `link`
    what rows say of one another, `store` does it all for rows that are unlike the others."""

    model: Any
    once: tuple[str, ...] = ()
    among: Q = field(default_factory=Q)
    is_once: Callable[[Any], bool] = lambda _: True
    is_taken_whole: bool = False
    noted: Callable[[Sequence[Row]], Sequence[ImportedRow]] = lambda _: ()
    parents: dict[str, type[Model]] = field(default_factory=dict)
    loose: dict[str, type[Model]] = field(default_factory=dict)
    left_out: Callable[[Here, Given], str] = lambda *_: ""
    complete: Callable[[Here, Any, Given], None] = _nothing
    after: Callable[[Here, Sequence[Row]], None] = _nothing
    link: Callable[[Here, Sequence[Given]], None] | None = None
    store: Callable[[Here, Sequence[Given]], tuple[int, int, Mapping[str, int]]] | None = None


def written(here: Here, made: Any) -> bool:
    """Note who wrote it, as far as that is believed; whether an operator's word needs no check."""
    if here.is_trusted:
        by = (getattr(made, name, "") for name in ("actor_kind", "trust"))
        return getattr(made, "binding", False) or ActorKind.OPERATOR in by or Trust.OPERATOR in by
    if getattr(made, "trust", "") and rank(made.trust) > rank(Trust.USER):
        made.trust = Trust.USER
    if getattr(made, "actor_kind", "") == ActorKind.OPERATOR:
        made.actor_kind = ActorKind.COMMAND
    for name in ("binding", "locked", "binding_before"):
        if hasattr(made, name):
            setattr(made, name, False)
    return False


def check(here: Here, made: Any, *texts: str) -> None:
    """Errors: RefusedDocumentError for a short text that speaks to a model."""
    if written(here, made):
        return
    write_trust = WriteTrust(Trust.USER, imports=True)
    if any(text and guarding.flags_of_text(text, write_trust) for text in texts):
        raise RefusedDocumentError(_REVIEW)


def check_policy(here: Here, road: Road, *texts: str) -> None:
    """Errors: RefusedDocumentError for what this tenant does not allow to be remembered, whoever wrote it."""
    try:
        content_policy.check(here.tenant, road, texts)
    except ContentForbidden as error:
        raise RefusedDocumentError(error.code) from error


def is_allowed(here: Here, *texts: str) -> bool:
    """Whether an older state may come with a row; what is left out of a history is not counted."""
    policy = content_policy.in_force(here.tenant)
    return policy is None or not policy.forbids(*texts)


def check_long(here: Here, made: Any, text: str) -> None:
    """The same for notes, as the API checks them."""
    if not written(here, made) and guarding.newly_speaks(ChangedText("", text)):
        raise RefusedDocumentError(_REVIEW)
