"""Tables and their query vocabulary; one module per subject."""

from memories.categories import Category, MemoryType
from memories.models.access.api_keys import APIKey, ManagementKey, Scope, ThrottleCounter, WritesAs
from memories.models.access.idempotency import IdempotencyRecord
from memories.models.access.operators import FailedSignIns, Language, Operator, OperatorMail, SavedFilter
from memories.models.actors import ActorKind
from memories.models.backups import Backup
from memories.models.content_policy import ContentPolicy, PolicyDrop, PolicyFinding, PolicyTrial, Road
from memories.models.conversations.conversations import (
    NOT_THE_PERSONS,
    SENT_AT,
    Author,
    Role,
    Session,
    SessionQueue,
    Turn,
    WorkingMemory,
    sent_at,
)
from memories.models.conversations.runs import ExtractionRun, ModelUse
from memories.models.conversations.seen_texts import SeenText
from memories.models.conversations.serving import ServedDay
from memories.models.conversations.trajectories import Trajectory, TrajectoryQuerySet, TrajectoryStep
from memories.models.forgetting import DecayPass
from memories.models.imports import Import, ImportedRow, ImportPiece, ImportSource
from memories.models.memories.attachments import (
    Attachment,
    AttachmentQuerySet,
    AttachmentReason,
    AttachmentState,
    Passage,
    PassageVector,
)
from memories.models.memories.changes import Batch, Change, ChangeSet
from memories.models.memories.diary import DiaryEntry, DiaryEntryQuerySet, DiaryVector
from memories.models.memories.dreams import Dream, DreamedEpisode, DreamEdit
from memories.models.memories.embeddings import EmbeddingSpace, EpisodeVector, FactVector, TurnVector
from memories.models.memories.episodes import Episode, EpisodeQuerySet, EpisodeStatus
from memories.models.memories.evidence import FactEvidence, FactRelation, RelationType
from memories.models.memories.facts import Fact, FactQuerySet
from memories.models.memories.files import Encoding, FileVersion, MemoryFile, MemoryFileQuerySet
from memories.models.memories.graph import GraphEntity, GraphTriple, GraphTripleQuerySet, TripleStatus
from memories.models.memories.groups import (
    GroupEvidence,
    GroupFact,
    GroupFactQuerySet,
    GroupMember,
    MemoryGroup,
    MemoryGroupQuerySet,
)
from memories.models.memories.logged_contexts import LoggedContext
from memories.models.memories.profile import ProfileSection, Section
from memories.models.memories.refusals import FactRefusal
from memories.models.memories.review import ReviewItem, ReviewNote
from memories.models.memories.revisions import FactRevision, ProfileRevision
from memories.models.memories.sent_blocks import SentBlock
from memories.models.memories.skills import (
    Skill,
    SkillEvidence,
    SkillPass,
    SkillQuerySet,
    SkillText,
    SkillTrial,
    SkillVersion,
)
from memories.models.memories.store_items import StoreItem, StoreItemVector
from memories.models.memories.visibility import MemoryScope, Status
from memories.models.people.agents import Agent
from memories.models.people.language_models import DailySpending, LanguageModel
from memories.models.people.people import EndUser
from memories.models.people.person_links import PersonLink
from memories.models.people.tenants import ContextLog, MemoryOf, Tenant
from memories.models.people.tombstones import ReturnPolicy, Tombstone
from memories.models.privacy.audit import AuditEvent, AuditSeal
from memories.models.privacy.cases import (
    CLOSED,
    EXPORTING,
    RESTRICTING,
    Asker,
    CaseState,
    CaseType,
    ExportState,
    IdentityCheck,
    PrivacyCase,
    PrivacyCaseQuerySet,
    PrivacyExport,
    PrivacyExportPiece,
    PrivacyExportQuerySet,
    RefusalGround,
    waits_for_handover,
)
from memories.models.privacy.retention import RetentionPass, TableRewrite
from memories.models.profile_schemas import ProfileSchema, ProfileSchemaQuerySet
from memories.models.webhooks import Event, WebhookDelivery, WebhookEndpoint
from memories.models.workers import EndpointState, WorkerHeartbeat, WorkerKind
from memories.trust import TRUSTED, Source, Trust

__all__ = [
    "CLOSED",
    "EXPORTING",
    "NOT_THE_PERSONS",
    "RESTRICTING",
    "SENT_AT",
    "TRUSTED",
    "APIKey",
    "ActorKind",
    "Agent",
    "Asker",
    "Attachment",
    "AttachmentQuerySet",
    "AttachmentReason",
    "AttachmentState",
    "AuditEvent",
    "AuditSeal",
    "Author",
    "Backup",
    "Batch",
    "CaseState",
    "CaseType",
    "Category",
    "Change",
    "ChangeSet",
    "ContentPolicy",
    "ContextLog",
    "DailySpending",
    "DecayPass",
    "DiaryEntry",
    "DiaryEntryQuerySet",
    "DiaryVector",
    "Dream",
    "DreamEdit",
    "DreamedEpisode",
    "EmbeddingSpace",
    "Encoding",
    "EndUser",
    "EndpointState",
    "Episode",
    "EpisodeQuerySet",
    "EpisodeStatus",
    "EpisodeVector",
    "Event",
    "ExportState",
    "ExtractionRun",
    "Fact",
    "FactEvidence",
    "FactQuerySet",
    "FactRefusal",
    "FactRelation",
    "FactRevision",
    "FactVector",
    "FailedSignIns",
    "FileVersion",
    "GraphEntity",
    "GraphTriple",
    "GraphTripleQuerySet",
    "GroupEvidence",
    "GroupFact",
    "GroupFactQuerySet",
    "GroupMember",
    "IdempotencyRecord",
    "IdentityCheck",
    "Import",
    "ImportPiece",
    "ImportSource",
    "ImportedRow",
    "Language",
    "LanguageModel",
    "LoggedContext",
    "ManagementKey",
    "MemoryFile",
    "MemoryFileQuerySet",
    "MemoryGroup",
    "MemoryGroupQuerySet",
    "MemoryOf",
    "MemoryScope",
    "MemoryType",
    "ModelUse",
    "Operator",
    "OperatorMail",
    "Passage",
    "PassageVector",
    "PersonLink",
    "PolicyDrop",
    "PolicyFinding",
    "PolicyTrial",
    "PrivacyCase",
    "PrivacyCaseQuerySet",
    "PrivacyExport",
    "PrivacyExportPiece",
    "PrivacyExportQuerySet",
    "ProfileRevision",
    "ProfileSchema",
    "ProfileSchemaQuerySet",
    "ProfileSection",
    "RefusalGround",
    "RelationType",
    "RetentionPass",
    "ReturnPolicy",
    "ReviewItem",
    "ReviewNote",
    "Road",
    "Role",
    "SavedFilter",
    "Scope",
    "Section",
    "SeenText",
    "SentBlock",
    "ServedDay",
    "Session",
    "SessionQueue",
    "Skill",
    "SkillEvidence",
    "SkillPass",
    "SkillQuerySet",
    "SkillText",
    "SkillTrial",
    "SkillVersion",
    "Source",
    "Status",
    "StoreItem",
    "StoreItemVector",
    "TableRewrite",
    "Tenant",
    "ThrottleCounter",
    "Tombstone",
    "Trajectory",
    "TrajectoryQuerySet",
    "TrajectoryStep",
    "TripleStatus",
    "Trust",
    "Turn",
    "TurnVector",
    "WebhookDelivery",
    "WebhookEndpoint",
    "WorkerHeartbeat",
    "WorkerKind",
    "WorkingMemory",
    "WritesAs",
    "sent_at",
    "waits_for_handover",
]
