"""What the hub answers, and what it is told: the schemas of its OpenAPI document by their names.

Answers are dataclasses. A member that a newer hub adds is passed over, and a value that it adds to a list of values is
given as it is. What is sent is a dict, as in the API's documentation: `{"role": "user", "content": "…"}`.

Written by `clients/python/generate.py` from the hub's OpenAPI document: change it there.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypedDict

from typing_extensions import Required

ActorKind = Literal["run", "operator", "key", "command", "decay", "dream", "link", "person"]

AnswerStatus = Literal["answered", "unknown", "evidence"]

Author = Literal["person", "application", "model", "other"]

CaseState = Literal[
    "received", "verified", "scoped", "approved", "running", "verifying", "completed", "refused", "on_hold", "failed"
]

CaseType = Literal["erasure", "access", "portability", "rectification", "restriction"]

Category = Literal[
    "identity",
    "relationship",
    "preference",
    "behavior",
    "skill",
    "knowledge",
    "context",
    "goal",
    "decision",
    "constraint",
    "correction",
    "other",
]

ContextLanguage = Literal["en", "zh-hans"]

ContextLog = Literal["off", "ids", "texts"]

Degraded = Literal["index"]

DeliveryState = Literal["waiting", "delivered", "failed"]

Direction = Literal["outgoing", "incoming", "both"]

DreamEditStatus = Literal["waiting", "applied", "refused", "declined", "undone"]

DreamStatus = Literal["running", "waiting", "applied", "unchanged", "declined", "restored", "failed"]

DropReason = Literal["budget", "limit"]

DryRunState = Literal["running", "done", "deleting", "deleted", "failed"]

EpisodeStatus = Literal["active", "pending", "trashed"]

EventName = Literal[
    "budget.reached",
    "case.due",
    "case.opened",
    "episode.created",
    "fact.created",
    "fact.forgotten",
    "fact.superseded",
    "fact.updated",
    "person.erased",
    "review.opened",
    "session.extracted",
    "skill.proposed",
    "skill.withdrawn",
]

EvidenceLevel = Literal["none", "weak", "strong"]

ExportState = Literal["making", "ready", "taken", "expired"]

FactFilterStatus = Literal["active", "pending", "superseded", "rejected", "archived", "trashed", "all"]

FactOrder = Literal[
    "-created_at",
    "created_at",
    "-updated_at",
    "updated_at",
    "-last_confirmed_at",
    "last_confirmed_at",
    "-confidence",
    "confidence",
    "-importance",
    "importance",
    "-decay_score",
    "decay_score",
]

FactScope = Literal["private", "share", "public"]

FactSource = Literal[
    "explicit_user_input",
    "implicit_inference",
    "system_generated",
    "external_data",
    "corrected_memory",
    "person_correction",
]

FactStatus = Literal["active", "pending", "superseded", "rejected", "archived", "trashed"]

FactType = Literal["profile", "preference", "procedural", "semantic"]

FileEncoding = Literal["utf-8", "base64"]

Fill = Literal["relevant", "budget"]

FoundKind = Literal["fact", "episode", "turn", "session", "triple", "diary", "file", "document"]

GroupKind = Literal["team", "project", "household", "other"]

HeldReason = Literal[
    "assistant_trust",
    "tool_trust",
    "suggested",
    "not_as_said",
    "less_sure",
    "outranked",
    "operators_word",
    "refused_before",
    "near_refused",
    "removal",
    "proposed",
    "forget_asked",
    "other_person",
    "imported",
    "not_judged",
    "instructions",
    "claims_rights",
    "possible_secret",
    "poor_quality",
    "habit",
    "change_of_mind",
    "recurring_problem",
]

HeldSectionStatus = Literal["pending"]

ImportSource = Literal[
    "auto",
    "chatgpt",
    "claude",
    "claude-code",
    "codex",
    "deepseek",
    "gemini",
    "grok",
    "mistral",
    "open-webui",
    "librechat",
    "lobechat",
    "cherry-studio",
    "jsonl",
    "facts",
    "mem0",
    "langgraph",
    "deerflow",
    "mempalace",
    "graphiti",
    "hindsight",
    "honcho",
    "memobase",
    "deepagents",
    "markdown",
    "memory-hub",
]

ImportStatus = Literal["checking", "checked", "running", "paused", "done", "failed", "undoing", "undone"]

Include = Literal[
    "profile",
    "facts",
    "graph",
    "groups",
    "files",
    "diary",
    "documents",
    "episodes",
    "working_memory",
    "turns",
    "unextracted",
]

KeyScope = Literal["ingest", "read", "write", "privacy", "read_all"]

KeyState = Literal["active", "expired", "offboarded"]

MatchType = Literal["prefix", "suffix"]

MemoryKind = Literal["fact", "profile", "triple", "group_fact", "file", "diary", "episode", "turn", "document"]

MemoryOf = Literal["person", "agent"]

PersonAct = Literal["correct", "forget", "conversations", "pause", "export", "erasure", "readers"]

PolicyKind = Literal["fact", "episode", "profile", "file", "triple", "group_fact", "diary"]

PolicyRoad = Literal[
    "extraction", "statement", "profile", "episode", "document", "file", "diary", "group", "graph", "store", "upkeep"
]

RelationType = Literal["related_to", "supersedes", "contradicts", "derived_from"]

ResultKind = Literal["fact", "episode", "turn", "session", "triple", "diary", "file", "document", "group_fact"]

Role = Literal["user", "assistant", "system", "tool"]

RunStatus = Literal["running", "committed", "failed", "parked", "discarded"]

SectionName = Literal[
    "work_context", "personal_context", "top_of_mind", "recent_months", "earlier_context", "long_term_background"
]

Signal = Literal["correction", "reinforcement", "preference", "identity", "goal", "decision"]

SkillScope = Literal["tenant", "group", "agent"]

SkillSection = Literal["title", "when", "step", "check", "pitfall"]

SkillVersionState = Literal["proposed", "served", "former", "rejected", "replaced"]

StartedBy = Literal["schedule", "hand"]

StatedBy = Literal["user", "agent", "tool", "import"]

StatedRelationType = Literal["related_to", "contradicts", "derived_from"]

StatedScope = Literal["private", "share"]

StatedSource = Literal["explicit_user_input", "implicit_inference", "system_generated", "external_data"]

StepKind = Literal["message", "tool_call", "tool_result", "note"]

StoreOperationName = Literal["get", "put", "delete", "search", "list_namespaces"]

StoredAttachmentState = Literal["pending", "read", "failed", "refused"]

TrajectoryOutcome = Literal["succeeded", "failed", "unknown"]

TripleState = Literal["active", "historical", "future"]

TripleStatus = Literal["active", "pending"]

Trust = Literal["operator", "user", "assistant", "tool"]

Verb = Literal["write", "edit", "upload", "restore", "delete"]

WorkStatus = Literal["idle", "pending", "running", "parked", "off"]

WritesAs = Literal["user", "agent"]


@dataclass(frozen=True, kw_only=True)
class Actor:
    """Who changed something."""

    kind: ActorKind
    id: str | None


@dataclass(frozen=True, kw_only=True)
class Agent:
    """An agent with its switches and guidance; `id` is the hub's, `agent_id` yours."""

    id: str
    agent_id: str
    extraction: bool
    recall: bool
    guidance: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A sentence of an answer, and the memories that say it."""

    text: str
    citations: list[str]


@dataclass(frozen=True, kw_only=True)
class AnswerEvidence:
    """A memory that an answer may rest on, as the model saw it."""

    kind: ResultKind
    id: str
    text: str
    role: Role | None
    session_id: str | None
    turn_numbers: list[int]
    evidence_level: EvidenceLevel
    cited: bool
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class AnswerSearch:
    """A search that the model planned beside the question's own."""

    query: str
    kinds: list[FoundKind]
    since: datetime | None
    until: datetime | None
    as_of: datetime | None
    found: int


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """What a run asked of the model."""

    prompt: int
    completion: int


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer; every sentence is said by the memories that it cites."""

    status: AnswerStatus
    answer: str
    sentences: list[Sentence]
    evidence: list[AnswerEvidence]
    evidence_level: EvidenceLevel
    searches: list[AnswerSearch]
    cut: int
    failure: str | None
    model: str | None
    calls: int
    tokens: Tokens
    cost: float | None
    restricted: bool = False
    serve: bool = True


class Attachment(TypedDict, total=False):
    """A file that comes with a message: its bytes, or its text."""

    name: str
    media_type: Required[str]
    data: str
    text: str


@dataclass(frozen=True, kw_only=True)
class CaseExport:
    """The newest export of a privacy request."""

    state: ExportState
    expires_at: datetime | None
    size: int


@dataclass(frozen=True, kw_only=True)
class PolicyCategory:
    """What may not be remembered; an example that is allowed wins."""

    name: str
    description: str
    words: list[str]
    not_allowed: list[str]
    allowed: list[str]


@dataclass(frozen=True, kw_only=True)
class PolicyChanges:
    """Names of the categories that a version added, changed and removed."""

    added: list[str]
    changed: list[str]
    removed: list[str]


@dataclass(frozen=True, kw_only=True)
class ContentPolicy:
    """A version of what the tenant does not allow to be remembered; version 0: there never was one."""

    version: int
    categories: list[PolicyCategory]
    changes: PolicyChanges
    restored: int | None
    actor_kind: str | None
    actor_id: str | None
    created_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Item:
    """A memory in a context."""

    kind: MemoryKind
    id: str
    score: float | None
    score_parts: dict[str, float]
    tokens: int


@dataclass(frozen=True, kw_only=True)
class ContextBlock:
    """One of two blocks; its revision changes with its text."""

    memory: str
    revision: str
    token_count: int
    items: list[Item]


class ChatMessage(TypedDict, total=False):
    """One message for a chat completion; what it does not have is left out."""

    role: Required[Role]
    content: Required[str | list[dict[str, Any]] | None]
    name: str
    tool_calls: list[Any]
    tool_call_id: str


@dataclass(frozen=True, kw_only=True)
class OfferedSkill:
    """A skill by its name, with what it is for and where its file is."""

    name: str
    description: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A memory that had no room in a context."""

    kind: MemoryKind
    id: str
    reason: DropReason


@dataclass(frozen=True, kw_only=True)
class Context:
    """The block for the model's prompt; with `if_revision` of the present revision only `unchanged` and
    `revision`.
    """

    memory: str = ""
    guidelines: str = ""
    token_count: int = 0
    max_tokens: int = 0
    tokenizer: str = ""
    stable: ContextBlock | None = None
    volatile: ContextBlock | None = None
    messages: list[ChatMessage] = field(default_factory=list)
    skills: list[OfferedSkill] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    evidence: EvidenceLevel | None = None
    degraded: Degraded | None = None
    revision: str
    restricted: bool = False
    serve: bool = True
    unchanged: bool = False


class NewMessage(TypedDict, total=False):
    """A message to store."""

    role: Required[Literal["user", "assistant", "system", "tool", "developer"]]
    content: Required[str | list[dict[str, Any]] | None]
    external_id: str | None
    timestamp: str | datetime | None
    tool_calls: list[dict[str, Any]] | None
    tool_call_id: str | None
    name: str | None
    author: Author | None
    metadata: dict[str, Any] | None
    attachments: list[Attachment] | None


class Conversation(TypedDict, total=False):
    """Messages of one session, for `post_turns_bulk`."""

    user_id: Required[str]
    session_id: Required[str]
    agent_id: str | None
    messages: Required[list[NewMessage]]
    flush: bool


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What the hub has of a person."""

    sessions: int
    turns: int
    facts: int
    episodes: int


@dataclass(frozen=True, kw_only=True)
class Deleted:
    """What a deletion by filters took, or with `dry_run` would take; `token` stands for these facts as they are."""

    dry_run: bool
    facts: int
    kept: int
    ids: list[str]
    token: str


@dataclass(frozen=True, kw_only=True)
class DiaryEntry:
    """A note that an agent wrote for itself."""

    id: str
    agent_id: str | None
    topic: str | None
    content: str
    trust: Trust
    created_at: datetime


class Part(TypedDict, total=False):
    """Another program's document: what we do not know in it means nothing here."""

    summary: str
    updatedAt: str | None


class UserParts(TypedDict, total=False):
    """Another program's document: what we do not know in it means nothing here."""

    workContext: Part
    personalContext: Part
    topOfMind: Part


class HistoryParts(TypedDict, total=False):
    """Another program's document: what we do not know in it means nothing here."""

    recentMonths: Part
    earlierContext: Part
    longTermBackground: Part


class DocumentFact(TypedDict, total=False):
    """A fact of a document. Members that are not named here come back as they were."""

    id: str | None
    content: Required[str]
    category: str
    confidence: float
    createdAt: str | None
    source: str | None
    sourceError: str | None


class MemoryDocument(TypedDict, total=False):
    """A memory document; what is left out stays as it is."""

    version: str
    lastUpdated: str | None
    user: UserParts
    history: HistoryParts
    facts: list[DocumentFact]


@dataclass(frozen=True, kw_only=True)
class DownloadedFile:
    """A file as a whole; `error` is None, or file_not_found, invalid_path, is_directory."""

    path: str
    content: str | None
    encoding: str | None
    error: str | None
    version: int | None
    created_at: datetime | None
    modified_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Downloaded:
    """Each file, or why not."""

    results: list[DownloadedFile]


@dataclass(frozen=True, kw_only=True)
class Dream:
    """What a model made of new episodes in a person's memory files."""

    id: str
    user_id: str
    agent_id: str | None
    status: DreamStatus
    started_by: StartedBy
    episodes: int
    summary: str | None
    failure: str | None
    extractor: str | None
    prompt_version: str | None
    calls: int
    prompt_tokens: int
    completion_tokens: int
    version: int
    started_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class DreamEdit:
    """An edit: `new_text` in the place of `old_text`; an empty `old_text` adds at the end, or begins a file."""

    number: int
    path: str
    old_text: str
    new_text: str
    status: DreamEditStatus
    code: str | None


@dataclass(frozen=True, kw_only=True)
class DreamWithEdits(Dream):
    """A dream with each edit that was proposed."""

    edits: list[DreamEdit]


@dataclass(frozen=True, kw_only=True)
class FoundCount:
    """How many memories of a kind fall under a category."""

    category: str
    kind: PolicyKind
    count: int


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """Which stored memories a content policy would not allow; `seen` of `total` are read, or deleted."""

    id: str
    state: DryRunState
    seen: int
    total: int
    found: list[FoundCount]
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Entity:
    """Something that a graph is about; of another name of it the entity itself."""

    id: str
    name: str
    type: str | None


@dataclass(frozen=True, kw_only=True)
class Triple:
    """That a subject stands in a relation to an object, from `valid_from` until before `valid_to`."""

    id: str
    agent_id: str | None
    subject: Entity
    predicate: str
    object: Entity
    valid_from: datetime | None
    valid_to: datetime | None
    state: TripleState
    confidence: float
    status: TripleStatus
    trust: Trust
    fact_id: str | None
    turn_id: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class EndedTriples:
    """What an invalidation ended; nothing if nothing was open."""

    triples: list[Triple]


@dataclass(frozen=True, kw_only=True)
class Episode:
    """What happened in a segment of a session, in short."""

    id: str
    user_id: str
    agent_id: str | None
    session_id: str
    first_number: int
    last_number: int
    summary: str
    key_topics: list[str]
    actions_taken: list[str]
    outcomes: list[str]
    importance: float
    quality: float
    flaws: list[str]
    extractor: str
    prompt_version: str | None
    status: EpisodeStatus
    pinned: bool
    version: int
    started_at: datetime
    ended_at: datetime
    created_at: datetime
    updated_at: datetime
    last_recalled_at: datetime | None
    expires_at: datetime | None
    trashed_at: datetime | None
    decay_score: float
    forget_at: datetime | None
    embedding_model: str | None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The turn that a fact rests on, and the quote."""

    session_id: str
    turn_number: int
    quote: str | None


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """How a search was done."""

    terms: list[str]
    language: str
    embedding_model: str | None
    searched: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Range:
    """The numbers of the turns that a run read."""

    first: int
    last: int
    fed: int


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """An attempt to extract a batch of turns; nothing of what was said."""

    id: str
    user_id: str
    session_id: str
    agent_id: str | None
    status: RunStatus
    attempt: int
    range: Range
    outcome: dict[str, int]
    refusals: dict[str, int]
    failure: str | None
    extractor: str
    model: str | None
    prompt_version: str | None
    calls: int
    tokens: Tokens
    cost: float | None
    started_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class ExtractionStatus:
    """Where a session's extraction stands."""

    status: WorkStatus
    due_at: datetime | None
    max_due_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Relation:
    """How a fact stands to another one; `incoming`: the other one states it."""

    type: RelationType
    target_id: str
    incoming: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A fact about a person, with what it rests on."""

    id: str
    user_id: str
    agent_id: str | None
    type: FactType
    category: Category
    content: str
    raw: str | None
    structured: dict[str, Any] | None
    external_id: str | None
    key: str | None
    value: str | None
    confidence: float
    importance: float
    tags: list[str]
    source: FactSource
    source_error: str | None
    trust: Trust
    extractor: str
    status: FactStatus
    pinned: bool
    locked: bool
    mentions: int
    version: int
    scope: FactScope
    allowed_users: list[str]
    allowed_roles: list[str]
    relations: list[Relation]
    evidence: list[Evidence]
    extraction_id: str | None
    created_at: datetime
    updated_at: datetime
    first_observed_at: datetime
    last_confirmed_at: datetime
    last_recalled_at: datetime | None
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: str | None
    expires_at: datetime | None
    decay_score: float
    forget_at: datetime | None
    embedding_model: str | None
    still_said_by: int | None


@dataclass(frozen=True, kw_only=True)
class FieldEvidence:
    """A turn that says the value of a field."""

    turn_id: str | None
    session_id: str
    turn_number: int
    quote: str


@dataclass(frozen=True, kw_only=True)
class FieldValue:
    """What the value of a field rests on."""

    field: str
    fact_id: str
    trust: Trust
    binding: bool
    confidence: float
    updated_at: datetime
    evidence: list[FieldEvidence]


@dataclass(frozen=True, kw_only=True)
class FileContent:
    """A window of its lines; start_line and end_line are null where no line is in it."""

    path: str
    size: int
    encoding: FileEncoding
    version: int
    locked: bool
    written_by: str
    trust: str | None
    created_at: datetime
    modified_at: datetime
    expires_at: datetime | None
    content: str
    total_lines: int
    start_line: int | None
    end_line: int | None
    next_offset: int | None
    blank: bool


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """A file in a list, or a folder: its path ends with a slash."""

    path: str
    is_dir: bool
    size: int
    modified_at: datetime | None
    version: int | None
    locked: bool


@dataclass(frozen=True, kw_only=True)
class FileMatch:
    """A line that contains the text."""

    path: str
    line: int
    text: str


class FileToUpload(TypedDict, total=False):
    """A file to store. `encoding` says what `content` is; base64 of a UTF-8 text becomes a text."""

    path: Required[str]
    content: Required[str]
    encoding: FileEncoding


@dataclass(frozen=True, kw_only=True)
class FileVersion:
    """A version of a file, with all of its content; `restored` is the version that it brought back."""

    version: int
    verb: Verb
    actor: Actor
    trust: Trust
    content: str
    encoding: FileEncoding
    size: int
    restored: int | None
    reason: str | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class FilesDeleted:
    """How many files went."""

    path: str
    deleted: int


class Filters(TypedDict, total=False):
    """What a result must be; all that are given must hold."""

    category: Category
    tags: list[str]
    since: str | datetime
    until: str | datetime
    agent_id: str | None
    session_id: str
    authors: list[Author]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One memory that a dry run found."""

    kind: PolicyKind
    id: str
    category: str
    user_id: str


@dataclass(frozen=True, kw_only=True)
class FoundEvidence:
    """The turn that a found fact rests on."""

    session_id: str
    turn_number: int
    quote: str | None


@dataclass(frozen=True, kw_only=True)
class FoundGroup:
    """The group that knows a found fact."""

    id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Result:
    """One memory; what does not belong to its kind is null or empty."""

    kind: ResultKind
    id: str
    external_id: str | None
    text: str
    score: float
    score_parts: dict[str, float]
    session_id: str | None
    agent_id: str | None
    turn_numbers: list[int]
    role: Role | None
    category: Category | None
    confidence: float | None
    tags: list[str]
    evidence: list[FoundEvidence]
    flagged: bool
    outdated_since: datetime | None
    group: FoundGroup | None
    path: str | None
    lines: list[int]
    attachment_id: str | None
    name: str | None
    page: int | None
    place: str | None
    author: Author | None
    evidence_level: EvidenceLevel
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Found:
    """The results of a search, best first, and how strong the strongest is as evidence."""

    results: list[Result]
    evidence: EvidenceLevel
    degraded: Degraded | None = None
    explain: Explanation | None = None
    restricted: bool = False
    serve: bool = True


@dataclass(frozen=True, kw_only=True)
class FoundFiles:
    """Files that match a pattern, the newest first; `truncated`: not all were looked at."""

    results: list[FileEntry]
    truncated: bool


@dataclass(frozen=True, kw_only=True)
class FoundLines:
    """Lines that contain a text; `truncated`: there are more."""

    results: list[FileMatch]
    truncated: bool


@dataclass(frozen=True, kw_only=True)
class StoreItem:
    """A value under a namespace and a key."""

    namespace: list[str]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class FoundStoreItem(StoreItem):
    """`score` is None without a query, and of what has no vector."""

    score: float | None


@dataclass(frozen=True, kw_only=True)
class FoundStoreItems:
    """What a search of the store found."""

    items: list[FoundStoreItem]


@dataclass(frozen=True, kw_only=True)
class GraphStats:
    """How much a graph has, and what its relations are called."""

    entities: int
    triples: int
    active: int
    historical: int
    future: int
    predicates: list[str]


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group of people: a team, a project, a household or another one."""

    id: str
    name: str
    kind: GroupKind
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class GroupFact:
    """A key for one person is not told who else said it."""

    id: str
    content: str
    about_user_id: str | None
    said_by: list[str]
    said_by_count: int
    created_at: datetime
    said_at: datetime


@dataclass(frozen=True, kw_only=True)
class GroupMember:
    """Somebody who belongs to a group; their agents are told what it knows."""

    user_id: str
    may_write: bool
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class SectionEvidence:
    """A turn that supports a section."""

    session_id: str
    turn_number: int


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of the profile."""

    agent_id: str | None
    summary: str
    version: int
    updated_at: datetime
    trust: Trust
    evidence: list[SectionEvidence]


@dataclass(frozen=True, kw_only=True)
class Sections:
    """All six sections; null where nothing is known."""

    work_context: Section | None
    personal_context: Section | None
    top_of_mind: Section | None
    recent_months: Section | None
    earlier_context: Section | None
    long_term_background: Section | None


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Six summaries about a person; None where nothing is known."""

    user_id: str
    sections: Sections


@dataclass(frozen=True, kw_only=True)
class HeldSection(Profile):
    """A text that waits for an operator, and the profile as it goes on being served."""

    status: HeldSectionStatus
    section: SectionName
    proposed: str
    reason: HeldReason
    review_item_id: str


@dataclass(frozen=True, kw_only=True)
class Import:
    """An uploaded file, and what came of it; `preview` and the counts of a dry run say what would."""

    id: str
    status: ImportStatus
    source: str | None
    size: int
    has_file: bool
    position: int
    expected: int
    counts: dict[str, int]
    left_out: dict[str, int]
    refused: dict[str, int]
    findings: list[dict[str, Any]]
    failure: str | None
    preview: Any
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    undone_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class InvalidValue:
    """A value that the schema does not allow any more: it is not served."""

    field: str
    fact_id: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class LanguageModel:
    """What a tenant has of its own of a language model. Its key is in no answer."""

    model: str | None
    base_url: str | None
    has_key: bool
    prompt_price: float | None
    completion_price: float | None
    daily_tokens: int | None
    daily_cost: float | None
    sees_pictures: bool
    version: int


class Limits(TypedDict, total=False):
    """How many memories of a kind a context holds at most."""

    facts: int
    episodes: int
    turns: int


@dataclass(frozen=True, kw_only=True)
class ManagedKey:
    """A key of a tenant, without its secret."""

    id: str
    name: str
    begins_with: str
    scopes: list[KeyScope]
    agent_id: str | None
    for_one_person: bool
    writes_as: WritesAs
    memory_of: str | None
    state: KeyState
    successor_id: str | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class MadeKey(ManagedKey):
    """A new key. Its `secret` is in no other answer."""

    secret: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """An address that is told of events of a tenant."""

    id: str
    name: str
    url: str
    events: list[EventName]
    content: bool
    enabled: bool
    disabled_for: str | None
    failures: int
    version: int
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class MadeWebhook(Webhook):
    """A webhook with a new `secret`, which is in no other answer."""

    secret: str = field(repr=False)


class Match(TypedDict, total=False):
    """Of a listing of namespaces: what they begin or end with; `*` stands for any one label."""

    match_type: Required[MatchType]
    path: Required[list[str]]


@dataclass(frozen=True, kw_only=True)
class ModelTest:
    """A language model that answered."""

    model: str
    milliseconds: int


class NewPolicyCategory(TypedDict, total=False):
    """What may not be remembered. What is left out is the hub's, where it knows a topic by this name."""

    name: Required[str]
    description: str
    words: list[str]
    not_allowed: list[str]
    allowed: list[str]


class NewStep(TypedDict, total=False):
    """A step to store: what the agent says, a call of a tool, its result, or a note."""

    kind: Required[StepKind]
    tool: str | None
    call_id: str | None
    arguments: dict[str, Any] | str | None
    content: str | None
    exit_code: int | None
    is_error: bool
    at: str | datetime | None


@dataclass(frozen=True, kw_only=True)
class OnDisk:
    """How long the deleted rows of an erasure are in the files of the tables."""

    window: str | None
    rewritten_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A member of staff who signs in to the admin. `tenants` None: every tenant."""

    id: str
    username: str
    first_name: str
    last_name: str
    email: str
    time_zone: str
    is_active: bool
    is_superuser: bool
    roles: list[str]
    tenants: list[str] | None
    has_password: bool
    has_second_factor: bool
    invited_until: datetime | None
    version: int
    created_at: datetime
    last_signed_in_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a task came out, and who says so."""

    result: TrajectoryOutcome
    source: str | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A piece of a file's text, and where it stands there."""

    id: str
    number: int
    page: int | None
    place: str | None
    start: int
    text: str
    author: Author
    flagged: bool


@dataclass(frozen=True, kw_only=True)
class Pending:
    """How much work is left: 0 when nothing is."""

    extraction: int
    embedding: int


@dataclass(frozen=True, kw_only=True)
class Person:
    """A person whom the hub knows; `id` is the hub's, `user_id` yours."""

    id: str
    user_id: str
    display_name: str | None
    time_zone: str | None
    language: str | None
    metadata: dict[str, Any]
    capture: bool
    serve: bool
    restricted: bool
    created_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True, kw_only=True)
class PersonDetail(Person):
    """A person, with counts and the work that is left."""

    counts: Counts
    pending: Pending


@dataclass(frozen=True, kw_only=True)
class PersonLink:
    """A link to a person's own page: open it at once, where the person is signed in."""

    id: str
    url: str
    expires_at: datetime
    allow: list[PersonAct]


@dataclass(frozen=True, kw_only=True)
class PersonProfile:
    """A person's profile in the form of a schema; `revision` is the same while nothing of it changes."""

    name: str
    user_id: str
    version: int
    revision: str
    document: dict[str, Any]
    evidence: list[FieldValue]
    missing: list[str]
    invalid: list[InvalidValue]


@dataclass(frozen=True, kw_only=True)
class PolicyDrop:
    """How many texts a version dropped on a day (UTC); nothing of them is kept."""

    day: str
    category: str
    version: int
    road: PolicyRoad
    count: int
    last_at: datetime


@dataclass(frozen=True, kw_only=True)
class PolicyTopics:
    """The topics that the hub knows."""

    topics: list[PolicyCategory]


@dataclass(frozen=True, kw_only=True)
class PromptMessage:
    """A message of a prompt, letter by letter."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True)
class PreviewedFact:
    """What would become of a fact; `before` is the text that a known one had."""

    verb: str
    content: str
    before: str | None
    category: str
    status: str
    trust: str
    confidence: float
    reasons: list[str]


@dataclass(frozen=True, kw_only=True)
class PreviewedRefusal:
    """An item of the model's answer that would not be kept, and the code of the reason."""

    content: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class PreviewedSection:
    """A section of the profile that would be written, or `proposed`: it would wait for review."""

    section: str
    text: str
    proposed: bool


@dataclass(frozen=True, kw_only=True)
class PreviewedAnswer:
    """What would become of the answer; nothing of it is stored."""

    facts: list[PreviewedFact]
    refused: list[PreviewedRefusal]
    profile: list[PreviewedSection]
    outcome: dict[str, int]
    refusals: dict[str, int]
    calls: int
    tokens: Tokens
    cost: float | None
    failure: str | None


@dataclass(frozen=True, kw_only=True)
class Preview:
    """A dry run of extraction: the exact prompt, and the answer if the model was asked."""

    range: Range
    extractor: str
    prompt_version: str
    prompt: list[PromptMessage]
    answer: PreviewedAnswer | None


@dataclass(frozen=True, kw_only=True)
class PrivacyCase:
    """A request of a person about their data, as it stands."""

    id: str
    user_id: str | None
    type: CaseType
    state: CaseState
    channel: str | None
    reference: str | None
    received_at: datetime
    due_at: datetime
    extended: bool
    verified_at: datetime | None
    approved_at: datetime | None
    completed_at: datetime | None
    restricted: bool
    counts: dict[str, int]
    receipt: dict[str, Any] | None
    export: CaseExport | None
    on_disk: OnDisk | None


@dataclass(frozen=True, kw_only=True)
class ProfileSchema:
    """A profile that the tenant defined by a JSON Schema."""

    name: str
    agent_id: str | None
    in_context: bool
    version: int
    schema: dict[str, Any]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class ProfileSchemas:
    """The profiles that the tenant defined."""

    profiles: list[ProfileSchema]


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Sessions with a known outcome, how many succeeded, and their share with Wilson's 95 % interval."""

    total: int
    succeeded: int
    share: float | None
    lowest: float
    highest: float


@dataclass(frozen=True, kw_only=True)
class StoredSession:
    """The conversation that turns were stored in."""

    id: str
    session_id: str
    user_id: str
    agent_id: str | None
    turn_count: int
    token_count: int


@dataclass(frozen=True, kw_only=True)
class StoredTurn:
    """What became of a message: `duplicate` if the session had it already."""

    id: str
    number: int
    external_id: str | None
    token_count: int
    duplicate: bool
    attachments: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What became of the posted messages."""

    session: StoredSession | None
    turns: list[StoredTurn]
    accepted: int
    duplicates: int
    redactions: int
    signals: list[Signal]
    extraction: ExtractionStatus


@dataclass(frozen=True, kw_only=True)
class Receipts:
    """A receipt for each conversation, in order."""

    results: list[Receipt]


@dataclass(frozen=True, kw_only=True)
class RestoredDream(Dream):
    """A dream that was taken back."""

    kept: int


@dataclass(frozen=True, kw_only=True)
class Retry:
    """When the batch is due again."""

    extraction: ExtractionStatus


@dataclass(frozen=True, kw_only=True)
class Revision:
    """A version of a fact."""

    version: int
    verb: str
    actor: Actor
    before: dict[str, Any]
    after: dict[str, Any]
    reason: str | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class SentAgain:
    """How many deliveries are sent again."""

    count: int


@dataclass(frozen=True, kw_only=True)
class Session:
    """A conversation."""

    id: str
    session_id: str
    user_id: str
    agent_id: str | None
    turn_count: int
    token_count: int
    created_at: datetime
    last_turn_at: datetime
    ended_at: datetime | None
    extraction: ExtractionStatus


@dataclass(frozen=True, kw_only=True)
class Window:
    """What has not left the conversation's window, and its limits: contexts trim it to them when they read it."""

    first_number: int
    turn_count: int
    token_count: int
    rounds: int
    max_tokens: int
    max_rounds: int


@dataclass(frozen=True, kw_only=True)
class WindowStatus:
    """Where the compaction of a session's window stands, and that of its episodes."""

    status: WorkStatus
    due_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class SessionDetail(Session):
    """A conversation, with its running summary and its window."""

    summary: str
    window: Window
    working_memory: WindowStatus


@dataclass(frozen=True, kw_only=True)
class Skill:
    """A skill in use; `path` is where it stands among the agent's files."""

    name: str
    description: str
    path: str
    scope: SkillScope
    family: str
    version: int
    served_from: datetime


@dataclass(frozen=True, kw_only=True)
class SkillText:
    """A text of a skill, in its section."""

    section: SkillSection
    text: str


@dataclass(frozen=True, kw_only=True)
class SkillVersion:
    """A version that was in use, newest first."""

    version: int
    state: SkillVersionState
    served_from: datetime
    served_until: datetime | None


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A session and where its extraction stands."""

    session: StoredSession
    extraction: ExtractionStatus


class StatedRelation(TypedDict, total=False):
    """How it stands to another fact of the person."""

    type: Required[StatedRelationType]
    target_id: Required[str]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of a trajectory."""

    position: int
    kind: StepKind
    tool: str | None
    call_id: str | None
    arguments: dict[str, Any] | str | None
    content: str
    exit_code: int | None
    is_error: bool
    cut: int
    at: datetime | None


@dataclass(frozen=True, kw_only=True)
class StoreAnswer:
    """What one operation is answered: of a get `item`, of a search `items`, of a listing `namespaces`, else
    nothing.
    """

    item: StoreItem | None
    items: list[FoundStoreItem] | None
    namespaces: list[list[str]] | None


@dataclass(frozen=True, kw_only=True)
class StoreAnswers:
    """In the order of the operations."""

    results: list[StoreAnswer]


@dataclass(frozen=True, kw_only=True)
class StoreNamespaces:
    """Namespaces, each as its labels."""

    namespaces: list[list[str]]


class StoreOperation(TypedDict, total=False):
    """One operation; which fields it has depends on `op`."""

    op: Required[StoreOperationName]
    namespace: list[str]
    key: str
    value: dict[str, Any]
    index: list[str] | bool | None
    ttl: float | None
    refresh_ttl: bool
    filter: dict[str, Any] | None
    query: str | None
    match_conditions: list[Match]
    max_depth: int | None
    limit: int
    offset: int


@dataclass(frozen=True, kw_only=True)
class StoredAttachment:
    """A file that came with a turn, and what became of it."""

    id: str
    turn_id: str
    session_id: str
    agent_id: str | None
    name: str | None
    media_type: str
    size: int
    sha256: str
    state: StoredAttachmentState
    reason: str | None
    detail: str | None
    pages: int | None
    created_at: datetime
    read_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class StoredDiaryEntry(DiaryEntry):
    """The entry as it was stored."""

    redactions: int


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """A file after a change."""

    path: str
    size: int
    encoding: FileEncoding
    version: int
    locked: bool
    written_by: str
    trust: str | None
    created_at: datetime
    modified_at: datetime
    expires_at: datetime | None
    created: bool
    occurrences: int
    redactions: int


@dataclass(frozen=True, kw_only=True)
class StoredGroupFact(GroupFact):
    """The fact as it was stored."""

    redactions: int


class Waiting(TypedDict, total=False):
    """What waits for an operator."""

    facts: Required[int]
    sections: Required[int]


class StoredDocument(TypedDict, total=False):
    """The document as it is served afterwards."""

    version: str
    lastUpdated: str | None
    user: UserParts
    history: HistoryParts
    facts: list[DocumentFact]
    pending: Waiting


@dataclass(frozen=True, kw_only=True)
class Tenant:
    """An application that uses the hub, with its settings. `numbers` has its own ones; the others are the hub's."""

    id: str
    slug: str
    name: str
    time_zone: str
    language: ContextLanguage
    capture: bool
    serve: bool
    memory_of: MemoryOf
    extraction_guidance: str
    trust_assistant: bool
    signal_phrases: dict[str, list[str]]
    context_log: ContextLog
    file_seed: str
    dream_guide: str
    dream_model: str
    dream_files: list[str]
    person_namespaces: list[str]
    person_page: bool
    person_may: list[str]
    person_color: str
    numbers: dict[str, Any]
    version: int
    created_at: datetime
    offboarded_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """What an agent did for a task, without its steps."""

    id: str
    agent_id: str | None
    session_id: str | None
    external_id: str | None
    task: str
    family: str | None
    outcome: Outcome
    skills: list[str]
    step_count: int
    trust: Trust
    started_at: datetime
    ended_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class TrajectoryReceipt:
    """What became of a post."""

    trajectory: Trajectory | None
    duplicate: bool
    accepted: int
    duplicates: int
    redactions: int
    cut: int


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A turn as it was posted."""

    id: str
    number: int
    role: Role
    author: Author
    content: str | list[dict[str, Any]]
    name: str | None
    tool_calls: list[dict[str, Any]] | None
    external_id: str | None
    token_count: int
    timestamp: datetime | None
    created_at: datetime
    redacted_at: datetime | None
    left_at: datetime | None
    metadata: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class UploadedFile:
    """What became of a file; `error` is None, or invalid_path, is_directory, permission_denied."""

    path: str
    error: str | None
    detail: str | None
    version: int | None
    redactions: int


@dataclass(frozen=True, kw_only=True)
class Uploaded:
    """What became of each file."""

    results: list[UploadedFile]


@dataclass(frozen=True, kw_only=True)
class WebhookDelivery:
    """An event for one webhook, with what came of sending it."""

    id: str
    event: str
    state: DeliveryState
    attempts: int
    status: int | None
    failure: str | None
    occurred_at: datetime
    tried_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class WholeSkill:
    """A skill with its file, its texts, and how sessions with and without it came out."""

    name: str
    description: str
    path: str
    scope: SkillScope
    family: str
    version: int
    served_from: datetime
    content: str
    texts: list[SkillText]
    served: Rate
    without: Rate
