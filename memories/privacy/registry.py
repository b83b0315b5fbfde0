"""Every store that can hold personal data, and every other model with the reason why it holds none.

tests/test_privacy_registry.py walks all models and fails when one is missing here, so a new table or field
cannot be forgotten by access and erasure.
"""

from collections.abc import Iterable, Sequence

from django.apps import apps
from django.contrib.postgres.fields import HStoreField
from django.db import models
from pgvector.django import BitField, HalfVectorField, SparseVectorField, VectorField
from picklefield.fields import PickledObjectField

from memories.models import EndUser
from memories.privacy.stores import Keeping, Store
from memories.privacy.stores_elsewhere import ELSEWHERE
from memories.privacy.stores_of_memories import EPISODES, FACTS, PROFILE, QUESTIONS, VECTORS
from memories.privacy.stores_of_readers import READERS
from memories.privacy.stores_of_requests import REQUESTS
from memories.privacy.stores_of_talk import MERGES, PEOPLE, TALK
from memories.privacy.waivers import WAIVERS, Waiver

__all__ = ["ELSEWHERE", "PEOPLE", "STORES", "WAIVERS", "Store", "Waiver", "all_stores", "counts", "unaccounted"]

# Those that a foreign key leads to, in the order in which they go: what hangs on a row goes before it.
STORES: tuple[Store, ...] = (
    *VECTORS,
    *REQUESTS,
    *QUESTIONS,
    *FACTS,
    *PROFILE,
    *EPISODES,
    *TALK,
    *MERGES,
    PEOPLE,
@dataclass(frozen=True)
class Store:
    """A model with personal data: `path` is the look-up from it to the person, `fields` are those that hold it."""

    model: str
    path: str
    fields: tuple[str, ...]

    def rows_of(self, person: EndUser) -> QuerySet[models.Model]:
        """The rows that are about this person, and about the names that lead to them."""
        model: type[models.Model] = apps.get_model(self.model)
        rows = model._default_manager.filter(**{f"{self.path}__in": EndUser.objects.behind(person).values("pk")})
        # A row may tell of both.
        return model._default_manager.filter(pk__in=rows.values("pk"))


@dataclass(frozen=True)
class Waiver:
    """A model, or named fields of a store, that hold nothing personal; `fields` empty means the whole model."""

    model: str
    reason: str
    fields: tuple[str, ...] = ()


STORES = (
    Store("memories.EndUser", "pk", ("external_id", "display_name", "time_zone", "language", "metadata")),
    Store("memories.Session", "end_user", ("external_id", "agent_id")),
    Store("memories.SessionQueue", "session__end_user", ("signals",)),
    Store("memories.WorkingMemory", "session__end_user", ("summary",)),
    Store(
        "memories.Turn",
        "end_user",
        ("content", "parts", "name", "tool_calls", "tool_call_id", "metadata", "external_id", "terms"),
    ),
    Store(
        "memories.Fact",
        "end_user",
        ("content", "content_hash", "terms", "raw", "structured", "key", "value", "tags", "source_error", "agent_id",
         "allowed_users", "allowed_roles", "embedded_hash"),
    ),
    Store("memories.FactEvidence", "fact__end_user", ("quote",)),
    Store("memories.FactRevision", "fact__end_user", ("before", "after", "reason")),
    Store("memories.FactRelation", "fact__end_user", ()),
    Store("memories.FactMerge", "survivor__end_user", ("traces",)),
    Store("memories.ReviewItem", "end_user", ("note", "traces")),
    Store("memories.ProfileRevision", "end_user", ("before", "after", "reason")),
    Store("memories.FactRefusal", "end_user", ("digest",)),
    Store("memories.TurnVector", "end_user", ("language", "vector")),
    Store("memories.FactVector", "end_user", ("language", "vector", "text_digest")),
    Store(
        "memories.Episode",
        "end_user",
        ("summary", "key_topics", "actions_taken", "outcomes", "content_hash", "terms", "embedded_hash"),
    ),
    Store("memories.EpisodeVector", "end_user", ("language", "vector", "text_digest")),
    Store("memories.ProfileSection", "end_user", ("summary",)),
    Store("memories.ExtractionRun", "end_user", ()),
    Store("memories.PersonMerge", "survivor", ()),
    Store("memories.IdempotencyRecord", "end_users", ("body", "key_digest", "request_digest")),
    Store(
        "memories.PrivacyCase",
        "end_user",
        ("channel", "reference", "extension_reason", "refusal_reason", "hold_reason", "told", "outcome", "needles"),
    ),
    Store("memories.PrivacyExport", "case__end_user", ("content",)),
)  # fmt: skip

_CODES = "codes and choices of ours"
_OUR_IDS = "ids of ours and codes; an audit event holds no content"

WAIVERS = (
    Waiver("memories.SessionQueue", _CODES, ("failure",)),
    Waiver("memories.Turn", _CODES, ("role",)),
    Waiver(
        "memories.Fact",
        _CODES,
        ("category", "source", "trust", "extractor", "prompt_version", "flags", "status", "scope"),
    ),
    Waiver("memories.WorkingMemory", _CODES, ("extractor", "prompt_version", "failure")),
    Waiver("memories.Episode", _CODES, ("flaws", "extractor", "prompt_version", "status")),
    Waiver("memories.DecayPass", "counts by code", ()),
    Waiver("memories.RetentionPass", "counts by code", ()),
    Waiver("memories.FactRevision", _CODES, ("verb", "actor_kind", "actor_id")),
    Waiver("memories.FactRelation", _CODES, ("type",)),
    Waiver("memories.ReviewItem", _CODES, ("kind", "reason", "state", "decided_by")),
    Waiver("memories.ProfileRevision", _CODES, ("section", "verb", "actor_kind", "actor_id")),
    Waiver("memories.FactRefusal", _CODES, ("kind",)),
    Waiver("memories.ProfileSection", _CODES, ("section", "actor_kind", "prompt_version")),
    Waiver(
        "memories.ExtractionRun",
        "counts by code, never a candidate's text",
        ("status", "extractor", "prompt_version", "outcome", "refusals", "failure"),
    ),
    Waiver("memories.IdempotencyRecord", _CODES, ("endpoint", "etag")),
    Waiver(
        "memories.PrivacyCase",
        "codes, counts and keyed hashes",
        (
            "subject",
            "type",
            "state",
            "asked_by",
            "opened_kind",
            "opened_by",
            "verified_how",
            "verified_kind",
            "verified_by",
            "preview",
            "policy",
            "approved_kind",
            "approved_by",
            "refusal",
            "held_from",
            "step",
            "counts",
            "findings",
            "failure",
            "receipt",
            "signature",
        ),
    ),
    Waiver("memories.PrivacyExport", "codes, and the hash of a random token", ("profile", "state", "token_digest")),
    Waiver("memories.Tombstone", "a keyed hash of an id, for ever: without it an erased person could come back"),
    Waiver("memories.Tenant", "settings of an application, written by staff"),
    Waiver("memories.APIKey", "names an application's key, written by staff"),
    Waiver("memories.Operator", "staff, not people being remembered"),
    Waiver("memories.ModelUse", "sums of a tenant's day"),
    Waiver("memories.Batch", "a verb, counts and times"),
    Waiver("memories.BatchEntry", _OUR_IDS),
    Waiver("memories.PersonMerge", "counts by code and names of fields", ("counts", "taken")),
    Waiver("memories.MergeEntry", _OUR_IDS),
    Waiver("memories.SavedFilter", "a name by staff and the choices of a list's filters; nothing searched for"),
    Waiver("memories.AuditEvent", _OUR_IDS),
    Waiver("memories.AuditSeal", "keyed digests of audit events"),
    Waiver("memories.EmbeddingSpace", "names a model; counts, times and codes"),
    Waiver("memories.EndpointState", "counts, times and the id of a session"),
    Waiver("memories.ThrottleCounter", "counts the requests of an application's key"),
    Waiver("memories.WorkerHeartbeat", "host names and process ids"),
    Waiver("auth.Group", "staff roles"),
    Waiver("auth.Permission", "part of the program"),
    Waiver("contenttypes.ContentType", "part of the program"),
    Waiver("admin.LogEntry", "object_repr is our content-free __str__; change messages name fields"),
    Waiver("sessions.Session", "staff sign-ins; the admin keeps no memory in them"),
    Waiver("account.EmailAddress", "of staff; not written"),
    Waiver("account.EmailConfirmation", "of staff; not written"),
    Waiver("mfa.Authenticator", "second factors of staff, encrypted"),
    Waiver("socialaccount.SocialAccount", "staff as their identity provider knows them"),
    Waiver("socialaccount.SocialApp", "not written: the provider is in the settings"),
    Waiver("socialaccount.SocialToken", "not written"),
    Waiver("axes.AccessAttempt", "staff who gave a wrong password: name and address, until the lockout is over"),
    Waiver("axes.AccessAttemptExpiration", "a time; not written"),
    Waiver("axes.AccessLog", "not written"),
    Waiver("axes.AccessFailureLog", "not written"),
    Waiver("django_q.OrmQ", "wake-ups carry a session's UUID and nothing else"),
    Waiver("django_q.Task", "wake-ups carry a session's UUID and return a count"),
    Waiver("django_q.Schedule", "part of the program"),
    Waiver("django_q.Success", "a view of django_q.Task"),
    Waiver("django_q.Failure", "a view of django_q.Task"),
)

_HOLDS_TEXT = (
    models.CharField,
    models.TextField,
    models.JSONField,
    models.BinaryField,
    models.FileField,
    models.GenericIPAddressField,
    HStoreField,
    PickledObjectField,
    HalfVectorField,
    VectorField,
    SparseVectorField,
    BitField,
)


def all_stores() -> tuple[Keeping, ...]:
    """In the order of an erasure: what leads to rows by their ids goes while these are there."""
    return (*ELSEWHERE, READERS, *STORES)


def counts(person: EndUser) -> dict[str, int]:
    """Label of each store → how many rows tell of the person, as it is now."""
    return {store.model: store.count(person) for store in all_stores()}


def unaccounted() -> list[str]:
    """Models and fields that could hold personal data and are neither registered nor waived, as `app.Model.field`."""
    missing: list[str] = []
    leading = _leading_to_people()
    for model in apps.get_models(include_auto_created=False):
        label = model._meta.label
        if model in leading and not _is_registered(label):
            missing.append(f"{label}.(leads to EndUser)")
        known = _known_fields(label)
        if known is not None:
            missing += [f"{label}.{name}" for name in _text_fields(model) if name not in known]
    return missing


def _is_registered(label: str) -> bool:
    return any(store.model == label for store in all_stores())


def _known_fields(label: str) -> set[str] | None:
    """The accounted fields of a model; None when all of it is waived."""
    waivers = [waiver for waiver in WAIVERS if waiver.model == label]
    if any(not waiver.fields for waiver in waivers):
        return None
    named = [waiver.fields for waiver in waivers] + [store.fields for store in all_stores() if store.model == label]
    return {name for fields in named for name in fields}


def _text_fields(model: type[models.Model]) -> Iterable[str]:
    """Fields that can hold text or bytes."""
    for field in model._meta.local_fields:
        base = getattr(field, "base_field", field)
        if isinstance(base, _HOLDS_TEXT) and not field.is_relation:
            yield field.name


def _leading_to_people() -> set[type[models.Model]]:
    """Models with a path to a person: by a reference to one, or to a model that has such a path."""
    found: set[type[models.Model]] = {EndUser}
    every = apps.get_models(include_auto_created=False)
    while new := {model for model in every if model not in found and found & set(_referred_by(model))}:
        found |= new
    return found


def _referred_by(model: type[models.Model]) -> Sequence[type[models.Model]]:
    fields = (*model._meta.local_fields, *model._meta.local_many_to_many)
    return [field.related_model for field in fields if isinstance(field.related_model, type)]
