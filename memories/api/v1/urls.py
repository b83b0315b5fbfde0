"""Addresses of version 1."""

from importlib import import_module

from django.urls import path

from memories.api.v1.agents.views import AgentsView, AgentView
from memories.api.v1.answer.views import AnswerView
from memories.api.v1.attachments.views import URLS as ATTACHMENTS
from memories.api.v1.content_policy.views import (
    ContentPolicyView,
    DryRunDeletionView,
    DryRunFindingsView,
    DryRunsView,
    DryRunView,
    PolicyLogView,
    PolicyRestoreView,
    PolicyTopicsView,
    PolicyVersionsView,
)
from memories.api.v1.context.views import ContextView
from memories.api.v1.dreams.views import DreamRestoreView, DreamsView, DreamView
from memories.api.v1.episodes.views import EpisodesView, EpisodeView
from memories.api.v1.extractions.previews import ExtractionPreviewView
from memories.api.v1.extractions.views import ExtractionRetryView, ExtractionsView, ExtractionView
from memories.api.v1.facts.views import (
    FactFeedbackView,
    FactHistoryView,
    FactRestoreView,
    FactsDeletionView,
    FactsView,
    FactView,
)
from memories.api.v1.files.views import (
    FileContentView,
    FileDownloadView,
    FileEditView,
    FileGlobView,
    FileGrepView,
    FileHistoryView,
    FileRestoreView,
    FilesView,
    FileUploadView,
)
from memories.api.v1.graph.views import (
    EntitiesView,
    GraphStatsView,
    GraphTimelineView,
    InvalidationView,
    RelationsView,
    SupersessionView,
    TriplesView,
)
from memories.api.v1.groups.views import (
    GroupFactsView,
    GroupFactView,
    GroupMembersView,
    GroupsView,
    GroupView,
)
from memories.api.v1.imports.views import (
    ImportPauseView,
    ImportResumeView,
    ImportsView,
    ImportUndoView,
    ImportView,
)
from memories.api.v1.management.views import (
    InvitationView,
    KeyRotationView,
    ModelTestView,
    OperatorsView,
    OperatorView,
    SendingAgainView,
    TakeBackView,
    TenantAgentsView,
    TenantAgentView,
    TenantKeysView,
    TenantKeyView,
    TenantModelView,
    TenantsView,
    TenantView,
    WebhookDeliveriesView,
    WebhookDisablingView,
    WebhookEnablingView,
    WebhookRotationView,
    WebhooksView,
    WebhookTestView,
    WebhookView,
)
from memories.api.v1.memory.views import MemoryView
from memories.api.v1.people.views import PeopleView, PersonView
from memories.api.v1.person_links.views import PersonLinksView
from memories.api.v1.privacy.views import PrivacyExportView, PrivacyRequestsView, PrivacyRequestView
from memories.api.v1.profile.views import ProfileSectionView, ProfileView
from memories.api.v1.profiles.views import PersonProfileView, ProfilesView, TenantProfilesView, TenantProfileView
from memories.api.v1.search.views import SearchView
from memories.api.v1.sessions.views import EndView, FlushView, SessionsView, SessionTurnsView, SessionView
from memories.api.v1.skills.views import URLS as SKILLS
from memories.api.v1.store.views import BatchView, ItemsSearchView, ItemsView, NamespacesView
from memories.api.v1.trajectories.views import URLS as TRAJECTORIES
from memories.api.v1.turns.views import BulkTurnsView, TurnRedactionView, TurnsView, TurnView
from memories.kinds import PLAIN

_TENANT = "management/tenants/<slug:slug>"
_WEBHOOK = f"{_TENANT}/webhooks/<uuid:webhook_id>"

# Looked through from the top: what agents ask most comes first.
urlpatterns = [
    path("groups", GroupsView.as_view()),
    path("groups/<uuid:group_id>", GroupView.as_view()),
    path("groups/<uuid:group_id>/members", GroupMembersView.as_view()),
    path("groups/<uuid:group_id>/facts", GroupFactsView.as_view()),
    path("groups/<uuid:group_id>/facts/<uuid:fact_id>", GroupFactView.as_view()),
    path("context", ContextView.as_view()),
    path("search", SearchView.as_view()),
    path("answer", AnswerView.as_view()),
    path("store/batch", BatchView.as_view()),
    path("store/items", ItemsView.as_view()),
    path("store/items/search", ItemsSearchView.as_view()),
    path("store/namespaces", NamespacesView.as_view()),
    path("turns", TurnsView.as_view()),
    path("turns/bulk", BulkTurnsView.as_view()),
    path("turns/<uuid:turn_id>", TurnView.as_view()),
    path("turns/<uuid:turn_id>/redact", TurnRedactionView.as_view()),
    *SKILLS,
    *TRAJECTORIES,
    path("sessions", SessionsView.as_view()),
    path("sessions/flush", FlushView.as_view()),
    path("sessions/end", EndView.as_view()),
    path("sessions/<uuid:session_id>", SessionView.as_view()),
    path("sessions/<uuid:session_id>/turns", SessionTurnsView.as_view()),
    path("facts", FactsView.as_view()),
    path("facts/delete", FactsDeletionView.as_view()),
    path("facts/<uuid:fact_id>", FactView.as_view()),
    path("facts/<uuid:fact_id>/history", FactHistoryView.as_view()),
    path("facts/<uuid:fact_id>/restore", FactRestoreView.as_view()),
    path("facts/<uuid:fact_id>/feedback", FactFeedbackView.as_view()),
    path("memory", MemoryView.as_view()),
    path("episodes", EpisodesView.as_view()),
    path("episodes/<uuid:episode_id>", EpisodeView.as_view()),
    path("profile", ProfileView.as_view()),
    path("profile/<str:section>", ProfileSectionView.as_view()),
    path("profiles", ProfilesView.as_view()),
    path("profiles/<str:name>", PersonProfileView.as_view()),
    path("dreams", DreamsView.as_view()),
    path("dreams/<uuid:dream_id>", DreamView.as_view()),
    path("dreams/<uuid:dream_id>/restore", DreamRestoreView.as_view()),
    path("files", FilesView.as_view()),
    path("files/content", FileContentView.as_view()),
    path("files/edit", FileEditView.as_view()),
    path("files/glob", FileGlobView.as_view()),
    path("files/grep", FileGrepView.as_view()),
    path("files/upload", FileUploadView.as_view()),
    path("files/download", FileDownloadView.as_view()),
    path("files/history", FileHistoryView.as_view()),
    path("files/restore", FileRestoreView.as_view()),
    *ATTACHMENTS,
    *(url for kind in PLAIN if kind.plain for url in import_module(kind.plain.api).URLS),
    path("imports", ImportsView.as_view()),
    path("imports/<uuid:import_id>", ImportView.as_view()),
    path("imports/<uuid:import_id>/pause", ImportPauseView.as_view()),
    path("imports/<uuid:import_id>/resume", ImportResumeView.as_view()),
    path("imports/<uuid:import_id>/undo", ImportUndoView.as_view()),
    path("users", PeopleView.as_view()),
    path("users/detail", PersonView.as_view()),
    path("person-links", PersonLinksView.as_view()),
    path("agents", AgentsView.as_view()),
    path("agents/<uuid:agent_id>", AgentView.as_view()),
    path("content-policy", ContentPolicyView.as_view()),
    path("content-policy/versions", PolicyVersionsView.as_view()),
    path("content-policy/restore", PolicyRestoreView.as_view()),
    path("content-policy/topics", PolicyTopicsView.as_view()),
    path("content-policy/log", PolicyLogView.as_view()),
    path("content-policy/dry-runs", DryRunsView.as_view()),
    path("content-policy/dry-runs/<uuid:trial_id>", DryRunView.as_view()),
    path("content-policy/dry-runs/<uuid:trial_id>/findings", DryRunFindingsView.as_view()),
    path("content-policy/dry-runs/<uuid:trial_id>/delete", DryRunDeletionView.as_view()),
    path("privacy/requests", PrivacyRequestsView.as_view()),
    path("privacy/requests/<uuid:case_id>", PrivacyRequestView.as_view()),
    path("extractions", ExtractionsView.as_view()),
    path("extractions/preview", ExtractionPreviewView.as_view()),
    path("extractions/<uuid:run_id>", ExtractionView.as_view()),
    path("extractions/<uuid:run_id>/retry", ExtractionRetryView.as_view()),
    path("graph/triples", TriplesView.as_view()),
    path("graph/invalidate", InvalidationView.as_view()),
    path("graph/supersede", SupersessionView.as_view()),
    path("graph/entities", EntitiesView.as_view()),
    path("graph/relations", RelationsView.as_view()),
    path("graph/timeline", GraphTimelineView.as_view()),
    path("graph/stats", GraphStatsView.as_view()),
    path("store/items", ItemsView.as_view()),
    path("store/items/search", ItemsSearchView.as_view()),
    path("store/namespaces", NamespacesView.as_view()),
    path("store/batch", BatchView.as_view()),
    path("privacy/requests/<uuid:case_id>/export", PrivacyExportView.as_view()),
    path("management/operators", OperatorsView.as_view()),
    path("management/operators/detail", OperatorView.as_view()),
    path("management/operators/invitation", InvitationView.as_view()),
    path("management/tenants", TenantsView.as_view()),
    path(_TENANT, TenantView.as_view()),
    path(f"{_TENANT}/take-back", TakeBackView.as_view()),
    path(f"{_TENANT}/model", TenantModelView.as_view()),
    path(f"{_TENANT}/model/test", ModelTestView.as_view()),
    path(f"{_TENANT}/agents", TenantAgentsView.as_view()),
    path(f"{_TENANT}/agents/<uuid:agent_id>", TenantAgentView.as_view()),
    path(f"{_TENANT}/keys", TenantKeysView.as_view()),
    path(f"{_TENANT}/keys/<uuid:key_id>", TenantKeyView.as_view()),
    path(f"{_TENANT}/keys/<uuid:key_id>/rotate", KeyRotationView.as_view()),
    path(f"{_TENANT}/profiles", TenantProfilesView.as_view()),
    path(f"{_TENANT}/profiles/<str:name>", TenantProfileView.as_view()),
    path(f"{_TENANT}/webhooks", WebhooksView.as_view()),
    path(_WEBHOOK, WebhookView.as_view()),
    path(f"{_WEBHOOK}/rotate", WebhookRotationView.as_view()),
    path(f"{_WEBHOOK}/disable", WebhookDisablingView.as_view()),
    path(f"{_WEBHOOK}/enable", WebhookEnablingView.as_view()),
    path(f"{_WEBHOOK}/test", WebhookTestView.as_view()),
    path(f"{_WEBHOOK}/send-again", SendingAgainView.as_view()),
    path(f"{_WEBHOOK}/deliveries", WebhookDeliveriesView.as_view()),
]
