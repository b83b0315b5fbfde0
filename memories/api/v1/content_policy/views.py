"""/content-policy: what the key's tenant does not allow to be remembered."""

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import etag, if_match, operation
from memories.api.v1.content_policy.serializers import (
    ContentPolicySerializer,
    DropsQuery,
    DryRunSerializer,
    FindingSerializer,
    NewContentPolicySerializer,
    NewDryRunSerializer,
    PolicyDropSerializer,
    PolicyRestoreSerializer,
    PolicyTopicsSerializer,
)
from memories.api.v1.fields import PageQuery, page_of
from memories.api.v1.filters import selected
from memories.content_policy import categories
from memories.curation.policy_trials import delete_found, start_trial
from memories.curation.tenants.content_policy import current_policy, put_policy, restore_policy
from memories.exceptions import NotFound, OperatorWord
from memories.models import ContentPolicy, PolicyDrop, PolicyTrial, Scope, Tenant, Trust

_NONE: dict[str, Any] = {
    "version": 0,
    "categories": [],
    "changes": {"added": [], "changed": [], "removed": []},
    "restored": None,
    "actor_kind": None,
    "actor_id": None,
    "created_at": None,
}


class _PolicyEndpoint(Endpoint):
    def check_may_change(self) -> None:
        """Errors: OperatorWord. What an agent says must not decide what is forbidden."""
        if self.write_trust().trust != Trust.USER:
            raise OperatorWord("The content policy comes from an operator, or from a key that writes as the user.")


def _shown(tenant: Tenant) -> Response:
    row = current_policy(tenant)
    version = row.version if row else 0
    body = ContentPolicySerializer(row).data if row else _NONE
    return Response(body, headers={"ETag": f'"{version}"'})


class ContentPolicyView(_PolicyEndpoint):
    @operation(
        "getContentPolicy",
        "Get the content policy",
        scope=Scope.READ,
        bound=Bound.TENANT,
        parameters=[etag(200)],
        answers={200: ContentPolicySerializer},
    )
    def get(self, request: Request) -> Response:
        return _shown(self.tenant)

    @operation(
        "putContentPolicy",
        "Give the tenant this content policy",
        description="From the next text on. What is stored already stays: a dry run finds what would go.",
        scope=Scope.WRITE,
        bound=Bound.TENANT,
        request=NewContentPolicySerializer,
        parameters=[if_match(), etag(200)],
        answers={200: ContentPolicySerializer},
        problems=(409, 412),
    )
    def put(self, request: Request) -> Response:
        given = self.body(NewContentPolicySerializer)
        self.check_may_change()
        put_policy(
            tenant=self.tenant,
            given=given["categories"],
            actor=self.actor,
            now=self.now,
            expected_version=self.expected_version(),
        )
        return _shown(self.tenant)


class PolicyVersionsView(Endpoint):
    @operation(
        "listContentPolicyVersions",
        "List the versions of the content policy, newest first",
        scope=Scope.READ,
        bound=Bound.TENANT,
        parameters=[PageQuery],
        answers={200: page_of(ContentPolicySerializer)},
    )
    def get(self, request: Request) -> Response:
        rows = ContentPolicy.objects.filter(tenant=self.tenant)
        return self.listed(rows, ContentPolicySerializer, given=self.query(PageQuery))


class PolicyRestoreView(_PolicyEndpoint):
    @operation(
        "restoreContentPolicy",
        "Make an older version the content policy again, as a new version",
        scope=Scope.WRITE,
        bound=Bound.TENANT,
        request=PolicyRestoreSerializer,
        parameters=[if_match(), etag(200)],
        answers={200: ContentPolicySerializer},
        problems=(404, 409, 412),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(PolicyRestoreSerializer)
        self.check_may_change()
        restore_policy(
            tenant=self.tenant,
            version=given["version"],
            actor=self.actor,
            now=self.now,
            expected_version=self.expected_version(),
        )
        return _shown(self.tenant)


class PolicyTopicsView(Endpoint):
    @operation(
        "listContentPolicyTopics",
        "List the topics that the hub knows, with their words and examples",
        scope=Scope.READ,
        bound=Bound.TENANT,
        answers={200: PolicyTopicsSerializer},
    )
    def get(self, request: Request) -> Response:
        return Response({"topics": categories.templates()})


class PolicyLogView(Endpoint):
    @operation(
        "listContentPolicyDrops",
        "List what was dropped, by day, category, version and road, newest first",
        description="Counts alone: nothing of a text is kept, and no person is named.",
        scope=Scope.READ,
        bound=Bound.TENANT,
        parameters=[DropsQuery],
        answers={200: page_of(PolicyDropSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(DropsQuery)
        rows = selected(PolicyDrop.objects.filter(tenant=self.tenant), DropsQuery, given)
        return self.listed(rows, PolicyDropSerializer, given=given, ordering=("-last_at", "-id"))


class DryRunsView(_PolicyEndpoint):
    @operation(
        "startPolicyDryRun",
        "Find out which stored memories these categories would not allow",
        description="A job: ask for the dry run until it is done. Nothing is deleted by it.",
        scope=Scope.WRITE,
        bound=Bound.TENANT,
        request=NewDryRunSerializer,
        answers={202: DryRunSerializer},
        problems=(409,),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(NewDryRunSerializer)
        self.check_may_change()
        row = start_trial(tenant=self.tenant, given=given.get("categories"), actor=self.actor, now=self.now)
        return Response(self.shown(row, DryRunSerializer), status=202)


class DryRunView(Endpoint):
    @operation(
        "getPolicyDryRun",
        "Get a dry run with its progress and what it found",
        scope=Scope.READ,
        bound=Bound.TENANT,
        answers={200: DryRunSerializer},
        problems=(404,),
    )
    def get(self, request: Request, trial_id: UUID) -> Response:
        return Response(self.shown(_trial(self.tenant, trial_id), DryRunSerializer))


class DryRunFindingsView(Endpoint):
    @operation(
        "listPolicyDryRunFindings",
        "List the memories that a dry run found, and that are not deleted yet",
        scope=Scope.READ,
        bound=Bound.TENANT,
        parameters=[PageQuery],
        answers={200: page_of(FindingSerializer)},
        problems=(404,),
    )
    def get(self, request: Request, trial_id: UUID) -> Response:
        given = self.query(PageQuery)
        rows = _trial(self.tenant, trial_id).findings.select_related("end_user")
        return self.listed(rows, FindingSerializer, given=given, ordering=("id",))


class DryRunDeletionView(_PolicyEndpoint):
    @operation(
        "deletePolicyDryRunFindings",
        "Move what a dry run found to the trash",
        description="A job. An operator can undo it as a whole.",
        scope=Scope.WRITE,
        bound=Bound.TENANT,
        answers={202: DryRunSerializer},
        problems=(404, 409),
        idempotent=True,
    )
    def post(self, request: Request, trial_id: UUID) -> Response:
        self.check_may_change()
        row = delete_found(trial_id=trial_id, tenant=self.tenant, actor=self.actor, now=self.now)
        return Response(self.shown(row, DryRunSerializer), status=202)


def _trial(tenant: Tenant, trial_id: UUID) -> PolicyTrial:
    """Errors: NotFound."""
    row = PolicyTrial.objects.filter(tenant=tenant, pk=trial_id).first()
    if row is None:
        raise NotFound
    return row
