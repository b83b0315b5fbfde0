"""Fields that no export has, each with the reason; and the check that profiles.py and this module cover all fields."""

from dataclasses import dataclass

from django.apps import apps

from memories.privacy import registry
from memories.privacy.exports.profiles import SECTIONS


@dataclass(frozen=True)
class Omission:
    """Fields of a store that no export has, and why; empty `fields` mean the whole store."""

    store: str
    reason: str
    fields: tuple[str, ...] = ()


_APPLICATION = "the application, which `about` names once"
_WHOSE = "whose row it is: this person's"
_NUMBERS = "numbers and hashes computed from exported text, for searches; a reader learns nothing from them"
_MACHINE = "bookkeeping of the hub's machines: locks, wake-ups, positions"
_OUR_IDS = "ids of exported rows"
_TASKS = "work that waits or is done: ids of ours and counts"
_SIGN_INS = "sign-ins of staff"
_STAFF = "staff appear as their role, in the field that ends in `kind`, not as persons"

OMISSIONS = (
    *(
        Omission(store, _APPLICATION, ("tenant",))
        for store in (
            "memories.EndUser", "memories.Session", "memories.Turn", "memories.Fact", "memories.Episode",
            "memories.ProfileSection", "memories.ReviewItem", "memories.ExtractionRun",
            "memories.TurnVector", "memories.FactVector", "memories.EpisodeVector", "memories.DiaryVector",
            "memories.PrivacyCase",
            "memories.ChangeSet", "memories.LoggedContext", "memories.SentBlock", "memories.MemoryFile",
            "memories.DiaryEntry", "memories.Dream", "memories.GroupMember", "memories.GroupEvidence",
            "memories.StoreItem", "memories.StoreItemVector", "memories.GraphEntity", "memories.GraphTriple",
            "memories.FactRefusal", "memories.ProfileRevision", "memories.SessionQueue", "memories.WorkingMemory",
            "memories.FactEvidence", "memories.FactRevision", "memories.FactRelation", "memories.Change",
            "memories.IdempotencyRecord", "memories.PrivacyExport",
        )
    ),
    *(
        Omission(store, _WHOSE, ("end_user",))
        for store in (
            "memories.Session", "memories.Turn", "memories.Fact", "memories.Episode", "memories.ProfileSection",
            "memories.ProfileRevision", "memories.ReviewItem", "memories.ExtractionRun", "memories.FactRefusal",
            "memories.TurnVector", "memories.FactVector", "memories.EpisodeVector", "memories.DiaryVector",
            "memories.PrivacyCase",
            "memories.ChangeSet", "memories.LoggedContext", "memories.SentBlock", "memories.MemoryFile",
            "memories.DiaryEntry", "memories.Dream", "memories.GroupMember", "memories.GroupEvidence",
            "memories.StoreItem", "memories.GraphEntity", "memories.GraphTriple",
        )
    ),
    *(
        Omission(store, "of the row that it is inside of", fields)
        for store, fields in (
            ("memories.SessionQueue", ("session",)),
            ("memories.WorkingMemory", ("session",)),
            ("memories.FactEvidence", ("id", "fact")),
            ("memories.FactRevision", ("id", "fact")),
            ("memories.FactRelation", ("id", "fact")),
            ("memories.Change", ("id", "change_set")),
            ("memories.ReviewNote", ("id", "item")),
            ("memories.FileVersion", ("id", "file", "tenant")),
            ("memories.DreamEdit", ("id", "dream", "tenant")),
        )
    ),
    Omission("memories.WebhookDelivery", "of which events other systems were told: ids, codes and times"),
    Omission("memories.DreamedEpisode", "which exported episodes were read, so that none is read twice"),
    Omission("memories.Dream", _MACHINE, ("lease_token", "lease_until", "attempts")),
    Omission("memories.GroupEvidence", "a number of the application's key, not of a person", ("actor_id",)),
    Omission("memories.GroupEvidence", "the fact is inside of it", ("fact",)),
    Omission("memories.GroupMember", "the group is inside of it", ("group",)),
    Omission("memories.GroupFact", _APPLICATION, ("tenant",)),
    Omission("memories.GroupFact", "told by `about_you`; anybody else is theirs", ("about",)),
    Omission("memories.GroupFact", _NUMBERS, ("content_hash",)),
    Omission("memories.MemoryGroup", _APPLICATION, ("tenant",)),
    Omission("memories.Dream", _STAFF, ("actor_id",)),
    Omission("memories.EndUser", _MACHINE, ("generation", "upkeep_tried_at", "upkept_at")),
    Omission(
        "memories.Session",
        _MACHINE,
        ("embedded_number", "deleted_number", "deleted_tokens", "deleted_rounds", "deleted_runs_number",
         "redactions"),
    ),
    Omission(
        "memories.SessionQueue",
        _MACHINE,
        ("pending_rounds", "pending_tokens", "pending_user", "pending_reply", "round_open", "lease_token",
         "lease_until", "woken_at", "batch_limit"),
    ),
    Omission(
        "memories.WorkingMemory",
        _MACHINE,
        ("left_tokens", "left_rounds", "episode_number", "episodes_made", "due_at", "over_since", "unarmed",
         "lease_token", "lease_until", "woken_at", "attempts"),
    ),
    Omission("memories.Turn", _NUMBERS, ("terms", "digest")),
    Omission("memories.Turn", _MACHINE, ("follows",)),
    Omission("memories.Turn", "a keyed hash of an answer, by which the hub knows its conversation", ("answer_key",)),
    Omission("memories.Turn", "what the hub guesses of exported text: places in it, a doubt", ("own", "is_doubtful")),
    Omission(
        "memories.SeenText",
        "keyed hashes of texts that passed, deleted after a week: they mean nothing to a reader",
    ),
    Omission("memories.Turn", "a judgement of exported text, made by the hub for itself", ("flagged",)),
    Omission("memories.Turn", "a number of the application's key, not of a person", ("key_id",)),
    Omission("memories.Fact", _NUMBERS, ("terms", "content_hash", "embedded_hash")),
    Omission("memories.Episode", _NUMBERS, ("terms", "content_hash", "embedded_hash")),
    Omission("memories.FactRevision", f"{_STAFF}; a run is named by `run`", ("actor_id",)),
    Omission("memories.ProfileRevision", f"{_STAFF}; a run is named by `run`", ("actor_id",)),
    Omission("memories.ReviewItem", _STAFF, ("decided_by", "taken_by", "taken_at")),
    Omission("memories.ReviewNote", _APPLICATION, ("tenant",)),
    Omission("memories.FileVersion", _STAFF, ("actor_id",)),
    Omission("memories.DiaryEntry", "a number of the application's key, not of a person", ("actor_id",)),
    Omission("memories.GraphTriple", _STAFF, ("actor_id",)),
    Omission("memories.GraphTriple", _MACHINE, ("dated_at", "place")),
    Omission("memories.GraphEntity", _NUMBERS, ("digest",)),
    Omission("memories.ReviewNote", _STAFF, ("actor_id",)),
    Omission("memories.ExtractionRun", "a version of the application's settings", ("guidance_version",)),
    Omission("memories.FactRefusal", "a keyed hash of what was refused: it means nothing to a reader",
            ("id", "digest")),
    Omission("memories.FactRefusal", _STAFF, ("actor_id",)),
    Omission("memories.ChangeSet", _STAFF, ("actor_id",)),
    # After an undone merge the other id may be another person's again.
    Omission("memories.ChangeSet", "id of a row; all ids of the person are in `people`", ("merged",)),
    Omission("memories.TurnVector", _NUMBERS, ("id", "vector", "number")),
    *(
        Omission(store, _NUMBERS, ("id", "vector", "text_digest"))
        for store in (
            "memories.FactVector", "memories.EpisodeVector", "memories.DiaryVector", "memories.StoreItemVector",
        )
    ),
    Omission("memories.StoreItem", _NUMBERS, ("content_hash", "embedded_hash")),
    Omission("memories.StoreItem", "a number of the application's key, not of a person", ("key_id",)),
    *(
        Omission(store, "exported as `model`", ("space",))
        for store in (
            "memories.TurnVector", "memories.FactVector", "memories.EpisodeVector", "memories.DiaryVector",
            "memories.StoreItemVector",
        )
    ),
    Omission("memories.DiaryEntry", _NUMBERS, ("content_hash", "terms", "embedded_hash")),
    Omission(
        "memories.IdempotencyRecord",
        "a copy, kept for a day, of an answer to the application: of exported data, and perhaps of other people's",
        ("id", "api_key", "key_digest", "request_digest", "etag", "body"),
    ),
    Omission("memories.PrivacyCase", _STAFF, ("opened_by", "verified_by", "approved_by")),
    Omission(
        "memories.PrivacyCase",
        _MACHINE,
        ("version", "step", "attempts", "lease_token", "lease_until"),
    ),
    Omission("memories.PrivacyCase", "a keyed hash of the person's id, which is exported", ("subject",)),
    Omission("memories.PrivacyCase", "encrypted: the ids and texts that an erasure looks for", ("needles",)),
    Omission("memories.PrivacyCase", "proves the receipt to whoever has it", ("signature",)),
    Omission("memories.PrivacyExportPiece", "earlier copies of this file, listed in `exports`"),
    Omission("memories.PrivacyExport", "guards a link", ("token_digest",)),
    Omission("memories.LoggedContext", _OUR_IDS, ("rests_on",)),
    Omission("memories.LoggedContext", "the key of the application that asked", ("key_id",)),
    Omission("memories.LoggedContext", _MACHINE, ("revision", "took_ms")),
    Omission("memories.SentBlock", _OUR_IDS, ("rests_on",)),
    Omission("memories.SentBlock", _MACHINE, ("seal", "ended")),
    Omission(
        "memories.SentBlock", "keyed hashes of where it stood: they mean nothing to a reader", ("session", "place")
    ),
    Omission("memories.SentBlock.others", "that somebody else was told a fact of the person's: it is that one's"),
    Omission("memories.LoggedContext.others", "that somebody else was told a fact of the person's: it is that one's"),
    Omission("memories.Agent", "agents of the application: the person's are in `sessions`"),
    Omission("memories.APIKey", "keys of an application: they hold only the person's id, which is exported"),
    Omission(
        "memories.EndUser",
        "whether staff or the application switched off `capture` and `serve`",
        ("capture_off_by", "serve_off_by"),
    ),
    Omission("memories.Fact.allowed_users", "that somebody else's fact may be shown to the person: it is that one's"),
    Omission("memories.ChangeSet", _MACHINE, ("batch", "reverted_by")),
    Omission("memories.Change", "a number that no exported row has", ("number",)),
    Omission("memories.DecayPass", _MACHINE),
    Omission("memories.EndpointState", _MACHINE),
    Omission("django_q.OrmQ", _TASKS),
    Omission("django_q.Task", _TASKS),
    Omission("django_q.Schedule", _TASKS),
    Omission("admin.LogEntry", "what staff did, in names of fields"),
    Omission("sessions.Session", _SIGN_INS),
    Omission("axes.AccessAttempt", _SIGN_INS),
    Omission("files", "receipts and earlier copies of this file, listed in `cases` and `exports`"),
)  # fmt: skip


def undecided() -> list[str]:
    """Fields of registered stores that are neither exported nor omitted, as `app.Model.field`; `*` for a store without
    a model."""
    missing: list[str] = []
    for store in sorted({store.model for store in registry.all_stores()}):
        is_model = store.count(".") == 1
        names = [field.name for field in apps.get_model(store)._meta.concrete_fields] if is_model else ["*"]
        decided = _exported(store) | _omitted(store)
        missing += [f"{store}.{name}" for name in names if not decided & {name, "*"}]
    return missing


def _exported(store: str) -> set[str]:
    sections = [one for section in SECTIONS for one in (section, *section.inside) if one.store == store]
    return {name for section in sections for name in (*section.fields, *section.computed)}


def _omitted(store: str) -> set[str]:
    omissions = [omission for omission in OMISSIONS if omission.store == store]
    return {name for omission in omissions for name in omission.fields or ("*",)}
