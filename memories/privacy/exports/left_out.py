"""What no export tells, each with its reason; and whether anything was forgotten here and in profiles.py."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from django.apps import apps

from memories.privacy import registry
from memories.privacy.exports.profiles import SECTIONS


class Named(Protocol):
    """A store of the registry."""

    @property
    def model(self) -> str: ...


@dataclass(frozen=True)
class LeftOut:
    """Fields of a store that no export tells, and why; `fields` empty means the whole store."""

    store: str
    reason: str
    fields: tuple[str, ...] = ()


_APPLICATION = "the application, which `about` names once"
_WHOSE = "whose row it is: this person's"
_NUMBERS = "numbers and hashes computed from the text that is told, to find it by; a reader learns nothing from them"
_MACHINE = "bookkeeping of the hub's machines: locks, wake-ups, positions"
_OUR_IDS = "ids of rows that are told"
_TASKS = "work that waits or is done: ids of ours and counts"
_SIGN_INS = "sign-ins of staff"
_STAFF = "staff are told as their role, by the field that ends in `kind`, not by who they are"

LEFT_OUT = (
    *(
        LeftOut(store, _APPLICATION, ("tenant",))
        for store in (
            "memories.EndUser", "memories.Session", "memories.Turn", "memories.Fact", "memories.Episode",
            "memories.ProfileSection", "memories.ReviewItem", "memories.ExtractionRun", "memories.PersonMerge",
            "memories.TurnVector", "memories.FactVector", "memories.EpisodeVector", "memories.PrivacyCase",
        )
    ),
    *(
        LeftOut(store, _WHOSE, ("end_user",))
        for store in (
            "memories.Session", "memories.Turn", "memories.Fact", "memories.Episode", "memories.ProfileSection",
            "memories.ProfileRevision", "memories.ReviewItem", "memories.ExtractionRun", "memories.FactRefusal",
            "memories.TurnVector", "memories.FactVector", "memories.EpisodeVector", "memories.PrivacyCase",
        )
    ),
    *(
        LeftOut(store, "of the row that it stands inside of", fields)
        for store, fields in (
            ("memories.SessionQueue", ("session",)),
            ("memories.WorkingMemory", ("session",)),
            ("memories.FactEvidence", ("id", "fact")),
            ("memories.FactRevision", ("id", "fact")),
            ("memories.FactRelation", ("id", "fact")),
        )
    ),
    LeftOut("memories.EndUser", _MACHINE, ("generation", "upkeep_tried_at", "upkept_at")),
    LeftOut(
        "memories.Session",
        _MACHINE,
        ("embedded_number", "deleted_number", "deleted_tokens", "deleted_rounds", "deleted_runs_number"),
    ),
    LeftOut(
        "memories.SessionQueue",
        _MACHINE,
        ("pending_rounds", "pending_tokens", "pending_user", "pending_reply", "round_open", "lease_token",
         "lease_until", "woken_at", "batch_limit"),
    ),
    LeftOut(
        "memories.WorkingMemory",
        _MACHINE,
        ("left_tokens", "left_rounds", "episode_number", "episodes_made", "due_at", "over_since", "unarmed",
         "lease_token", "lease_until", "woken_at", "attempts"),
    ),
    LeftOut("memories.Turn", _NUMBERS, ("terms",)),
    LeftOut("memories.Turn", "a number of the application's key, not of a person", ("key_id",)),
    LeftOut("memories.Fact", _NUMBERS, ("terms", "content_hash", "embedded_hash")),
    LeftOut("memories.Episode", _NUMBERS, ("terms", "content_hash", "embedded_hash")),
    LeftOut("memories.FactRevision", f"{_STAFF}; a run is named by `run`", ("actor_id",)),
    LeftOut("memories.ProfileRevision", f"{_STAFF}; a run is named by `run`", ("actor_id",)),
    LeftOut("memories.ReviewItem", _STAFF, ("decided_by",)),
    LeftOut("memories.ExtractionRun", "a version of the application's settings", ("guidance_version",)),
    LeftOut("memories.FactRefusal", "a keyed hash of what was refused: it tells nothing, and is needed as it is",
            ("id", "digest")),
    LeftOut("memories.FactMerge", "ids, versions and keyed hashes by which it can be undone", ("traces",)),
    # Of a merge that was undone, the other id may be another person's again.
    LeftOut("memories.PersonMerge", "ids of two rows; all ids of the person are in `people`", ("survivor", "merged")),
    LeftOut("memories.TurnVector", _NUMBERS, ("id", "vector", "number")),
    LeftOut("memories.TurnVector", "told as `model`", ("space",)),
    LeftOut("memories.FactVector", _NUMBERS, ("id", "vector", "text_digest")),
    LeftOut("memories.FactVector", "told as `model`", ("space",)),
    LeftOut("memories.EpisodeVector", _NUMBERS, ("id", "vector", "text_digest")),
    LeftOut("memories.EpisodeVector", "told as `model`", ("space",)),
    LeftOut(
        "memories.IdempotencyRecord",
        "a copy, kept for a day, of an answer to the application: of what is told here, and perhaps of others",
        ("id", "api_key", "key_digest", "request_digest", "etag", "body"),
    ),
    LeftOut("memories.PrivacyCase", _STAFF, ("opened_by", "verified_by", "approved_by")),
    LeftOut(
        "memories.PrivacyCase",
        _MACHINE,
        ("version", "step", "attempts", "lease_token", "lease_until"),
    ),
    LeftOut("memories.PrivacyCase", "a keyed hash of the person's id, which is told", ("subject",)),
    LeftOut("memories.PrivacyCase", "encrypted: the ids and texts that an erasure looks for", ("needles",)),
    LeftOut("memories.PrivacyCase", "proves the receipt to whoever has it", ("signature",)),
    LeftOut("memories.PrivacyExport", "an earlier copy of this file", ("content",)),
    LeftOut("memories.PrivacyExport", "guards a link", ("token_digest",)),
    LeftOut("memories.Fact.allowed_users", "that somebody else's fact may be shown to the person: it is that one's"),
    LeftOut("memories.BatchEntry", _OUR_IDS),
    LeftOut("memories.MergeEntry", _OUR_IDS),
    LeftOut("memories.DecayPass", _MACHINE),
    LeftOut("memories.EndpointState", _MACHINE),
    LeftOut("django_q.OrmQ", _TASKS),
    LeftOut("django_q.Task", _TASKS),
    LeftOut("django_q.Schedule", _TASKS),
    LeftOut("admin.LogEntry", "what staff did, in names of fields"),
    LeftOut("sessions.Session", _SIGN_INS),
    LeftOut("axes.AccessAttempt", _SIGN_INS),
    LeftOut("files", "receipts and earlier copies of this file, told in `cases` and `exports`"),
)  # fmt: skip


def stores() -> Iterable[Named]:
    """All that the registry knows, those that no model has among them."""
    return registry.all_stores()


def undecided() -> list[str]:
    """Fields of registered stores that are neither told nor left out with a reason, as `app.Model.field`; of a store
    that has no model, `*`."""
    missing: list[str] = []
    for name in sorted({store.model for store in stores()}):
        decided = _told(name) | _left_out(name)
        missing += [f"{name}.{field}" for field in _names_of(name) if not decided & {field, "*"}]
    return missing


def _names_of(store: str) -> list[str]:
    """All fields of a store's model; a store that is no model's has none by name."""
    if store.count(".") != 1:
        return ["*"]
    return [field.name for field in apps.get_model(store)._meta.concrete_fields]


def _told(store: str) -> set[str]:
    told = [one for section in SECTIONS for one in (section, *section.inside) if one.store == store]
    return {name for section in told for name in (*section.fields, *section.computed)}


def _left_out(store: str) -> set[str]:
    lines = [line for line in LEFT_OUT if line.store == store]
    return {name for line in lines for name in line.fields or ("*",)}
