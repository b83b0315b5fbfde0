"""Tables and their query vocabulary; one module per subject."""

from memories.models.actors import ActorKind
from memories.models.api_keys import APIKey, Scope
from memories.models.audit import AuditEvent
from memories.models.batches import Batch, BatchEntry
from memories.models.case_exports import ExportState, PrivacyExport
from memories.models.cases import (
    CLOSED,
    EXPORTING,
    RESTRICTING,
    Asker,
    CaseState,
    CaseType,
    IdentityCheck,
    PrivacyCase,
    PrivacyCaseQuerySet,
    RefusalGround,
)
from memories.models.conversations import Role, Session, SessionQueue, Turn
from memories.models.embeddings import EmbeddingSpace, EpisodeVector, FactVector, TurnVector
from memories.models.episodes import Episode, EpisodeQuerySet, EpisodeStatus
from memories.models.evidence import FactEvidence, FactRelation, RelationType
from memories.models.fact_merges import FactMerge
from memories.models.facts import (
    Category,
    Fact,
    FactQuerySet,
    MemoryScope,
    MemoryType,
    Source,
    Status,
    Trust,
)
from memories.models.forgetting import DecayPass
from memories.models.idempotency import IdempotencyRecord
from memories.models.merges import MergeEntry, PersonMerge
from memories.models.operators import Language, Operator
from memories.models.people import EndUser
from memories.models.profile import ProfileSection, Section
from memories.models.refusals import FactRefusal
from memories.models.retention import RetentionPass
from memories.models.review import ReviewItem
from memories.models.revisions import FactRevision, ProfileRevision
from memories.models.rewrites import TableRewrite
from memories.models.runs import ExtractionRun
from memories.models.saved_filters import (
    SavedFilter,
)
from memories.models.seals import AuditSeal
from memories.models.spending import (
    ModelUse,
)
from memories.models.tenants import Tenant
from memories.models.throttles import ThrottleCounter
from memories.models.tombstones import ReturnPolicy, Tombstone
from memories.models.workers import EndpointState, WorkerHeartbeat, WorkerKind
from memories.models.working_memory import WorkingMemory

__all__ = [
    "CLOSED",
    "EXPORTING",
    "RESTRICTING",
    "APIKey",
    "ActorKind",
    "Asker",
    "AuditEvent",
    "AuditSeal",
    "Batch",
    "BatchEntry",
    "CaseState",
    "CaseType",
    "Category",
    "DecayPass",
    "EmbeddingSpace",
    "EndUser",
    "EndpointState",
    "Episode",
    "EpisodeQuerySet",
    "EpisodeStatus",
    "EpisodeVector",
    "ExportState",
    "ExtractionRun",
    "Fact",
    "FactEvidence",
    "FactMerge",
    "FactQuerySet",
    "FactRefusal",
    "FactRelation",
    "FactRevision",
    "FactVector",
    "IdempotencyRecord",
    "IdentityCheck",
    "Language",
    "MemoryScope",
    "MemoryType",
    "MergeEntry",
    "ModelUse",
    "Operator",
    "PersonMerge",
    "PrivacyCase",
    "PrivacyCaseQuerySet",
    "PrivacyExport",
    "ProfileRevision",
    "ProfileSection",
    "RefusalGround",
    "RelationType",
    "RetentionPass",
    "ReturnPolicy",
    "ReviewItem",
    "Role",
    "SavedFilter",
    "Scope",
    "Section",
    "Session",
    "SessionQueue",
    "Source",
    "Status",
    "TableRewrite",
    "Tenant",
    "ThrottleCounter",
    "Tombstone",
    "Trust",
    "Turn",
    "TurnVector",
    "WorkerHeartbeat",
    "WorkerKind",
    "WorkingMemory",
]
