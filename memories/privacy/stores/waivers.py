"""Models, and fields of stores, that hold nothing personal, each with the reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Waiver:
    """A model, or these fields of a store; empty `fields` mean the whole model."""

    model: str
    reason: str
    fields: tuple[str, ...] = ()


_CODES = "codes and choices of ours"
_OUR_IDS = "ids of ours and codes; an audit event holds no content"

WAIVERS = (
    Waiver("memories.SessionQueue", _CODES, ("failure",)),
    Waiver("memories.Session", _CODES, ("memory_of",)),
    Waiver("memories.Turn", _CODES, ("role", "author")),
    Waiver("memories.Turn", "places in the text", ("own",)),
    Waiver("memories.SeenText", _CODES, ("author",)),
    Waiver("memories.SentBlock", _CODES, ("kind",)),
    Waiver("memories.EndUser", _CODES, ("capture_off_by", "serve_off_by")),
    Waiver(
        "memories.Fact",
        _CODES,
        ("category", "source", "trust", "extractor", "prompt_version", "flags", "status", "scope"),
    ),
    Waiver("memories.WorkingMemory", _CODES, ("extractor", "prompt_version", "failure")),
    Waiver("memories.Episode", _CODES, ("flaws", "extractor", "prompt_version", "status")),
    Waiver("memories.DecayPass", "codes and counts by code", ("trigger", "actor_id", "state", "failure", "counts")),
    Waiver("memories.FactRevision", _CODES, ("verb", "actor_kind", "actor_id")),
    Waiver("memories.FactRelation", _CODES, ("type",)),
    Waiver("memories.ReviewItem", _CODES, ("kind", "reason", "state", "decided_by", "taken_by")),
    Waiver("memories.ReviewNote", _CODES, ("actor_kind", "actor_id")),
    Waiver("memories.ProfileRevision", _CODES, ("section", "verb", "actor_kind", "actor_id", "trust")),
    Waiver("memories.MemoryFile", _CODES, ("encoding", "actor_kind", "trust")),
    Waiver("memories.FileVersion", _CODES, ("verb", "encoding", "actor_kind", "actor_id", "trust")),
    Waiver("memories.DiaryEntry", _CODES, ("actor_kind", "actor_id", "trust")),
    Waiver(
        "memories.GraphTriple", _CODES, ("status", "flags", "trust", "extractor", "actor_kind", "actor_id")
    ),
    Waiver(
        "memories.Dream",
        _CODES,
        ("kind", "trigger", "actor_kind", "actor_id", "state", "extractor", "prompt_version", "failure"),
    ),
    Waiver("memories.GroupEvidence", _CODES, ("actor_kind", "actor_id", "trust")),
    Waiver("memories.MemoryGroup", _CODES, ("kind",)),
    Waiver("memories.DreamEdit", _CODES, ("state", "code")),
    Waiver("memories.FactRefusal", _CODES, ("kind", "actor_kind", "actor_id")),
    Waiver("memories.ProfileSection", _CODES, ("section", "actor_kind", "prompt_version", "trust")),
    Waiver(
        "memories.ExtractionRun",
        "counts by code, never a candidate's text",
        ("status", "extractor", "prompt_version", "outcome", "refusals", "failure"),
    ),
    Waiver("memories.IdempotencyRecord", _CODES, ("endpoint", "etag")),
    Waiver(
        "memories.PrivacyCase",
        "codes, counts and keyed hashes",
        ("subject", "type", "state", "asked_by", "opened_kind", "opened_by", "verified_how", "verified_kind",
         "verified_by", "preview", "policy", "approved_kind", "approved_by", "refusal", "held_from", "step", "counts",
         "findings", "failure", "receipt", "signature"),
    ),
    Waiver("memories.PrivacyExport", "codes, and the hash of a random token", ("profile", "state", "token_digest")),
    Waiver("memories.Tombstone", "a keyed hash of an id, for ever: without it an erased person could come back"),
    Waiver("memories.Tenant", "settings of an application, written by staff"),
    Waiver(
        "memories.APIKey",
        "names an application's key and agent, written by staff",
        ("name", "prefix", "digest", "scopes", "agent_id", "writes_as", "speaks_for_user", "memory_of"),
    ),
    Waiver("memories.ManagementKey", "names a tool's key, written by staff"),
    Waiver("memories.Agent", "guidance for the model, written by staff or the application", ("guidance",)),
    Waiver("memories.Agent", _CODES, ("extraction_off_by", "recall_off_by", "guidance_by")),
    Waiver("memories.Operator", "staff, not people being remembered"),
    Waiver("memories.ModelUse", "sums of a tenant's day"),
    Waiver("memories.DailySpending", "sums of a tenant's day"),
    Waiver("memories.ServedDay", "sums of a tenant's day"),
    Waiver("memories.LanguageModel", "settings of an application, written by staff; its key is encrypted"),
    Waiver("memories.OperatorMail", "of what staff were reminded: ids, codes and times"),
    Waiver("memories.WebhookEndpoint", "settings of an application, written by staff; its secrets are encrypted"),
    Waiver("memories.WebhookDelivery", "ids, codes and times", ("event", "data", "once", "state", "failure")),
    Waiver("memories.Batch", "a verb, counts and times"),
    Waiver("memories.ChangeSet", _CODES, ("verb", "actor_kind", "actor_id", "counts")),
    Waiver("memories.Change", _CODES, ("table", "action")),
    Waiver("memories.SavedFilter", "a name by staff and the choices of a list's filters; nothing searched for"),
    Waiver("memories.AuditEvent", _OUR_IDS),
    Waiver("memories.EmbeddingSpace", "names a model; counts, times and codes"),
    Waiver("memories.ThrottleCounter", "counts the requests of an application's key"),
    Waiver("memories.FailedSignIns", "counts by keyed hashes, of who tries to sign in; gone within hours"),
    Waiver("memories.WorkerHeartbeat", "host names and process ids"),
    Waiver("memories.RetentionPass", "counts by code"),
    Waiver("memories.AuditSeal", "keyed digests of audit events"),
    Waiver("memories.TableRewrite", "names of tables, and times"),
    Waiver("memories.Backup", "times and sizes"),
    Waiver("auth.Group", "staff roles"),
    Waiver("auth.Permission", "part of the program"),
    Waiver("contenttypes.ContentType", "part of the program"),
    Waiver("sessions.Session", "a random key", ("session_key",)),
    Waiver("account.EmailAddress", "of staff; not written"),
    Waiver("account.EmailConfirmation", "of staff; not written"),
    Waiver("mfa.Authenticator", "second factors of staff, encrypted"),
    Waiver("socialaccount.SocialAccount", "staff as their identity provider knows them"),
    Waiver("socialaccount.SocialApp", "not written: the provider is in the settings"),
    Waiver("socialaccount.SocialToken", "not written"),
    Waiver(
        "axes.AccessAttempt",
        "of who gave a wrong password, until the lockout is over",
        ("user_agent", "ip_address", "http_accept"),
    ),
    Waiver("axes.AccessAttemptExpiration", "a time; not written"),
    Waiver("axes.AccessLog", "not written"),
    Waiver("axes.AccessFailureLog", "not written"),
    Waiver("django_q.OrmQ", "names the cluster", ("key",)),
    Waiver("django_q.Task", "names functions and the cluster", ("id", "func", "hook", "cluster")),
    Waiver(
        "django_q.Schedule",
        "names functions and times",
        ("func", "hook", "schedule_type", "cron", "task", "cluster", "intended_date_kwarg"),
    ),
    Waiver("django_q.Success", "a view of django_q.Task"),
    Waiver("django_q.Failure", "a view of django_q.Task"),
)  # fmt: skip
