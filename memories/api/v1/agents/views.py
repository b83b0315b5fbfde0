"""/agents: the agents of the key's tenant, with their switches and guidance."""

from uuid import UUID

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound, agents_of
from memories.api.endpoints import AnyEndpoint, Endpoint
from memories.api.schema import operation
from memories.api.v1.agents.serializers import AgentChangesSerializer, AgentSerializer, AgentsQuery
from memories.api.v1.fields import page_of
from memories.api.v1.filters import selected
from memories.curation.tenants.agents import change_agent
from memories.exceptions import OperatorWord
from memories.models import Agent, Scope, Trust

_GUIDANCE = "Instructions to the model come from an operator, or from a key that writes as the user."


def listed_agents(view: AnyEndpoint, agents: QuerySet[Agent]) -> Response:
    """The page of these agents that AgentsQuery asks for, for both kinds of keys."""
    given = view.query(AgentsQuery)
    return view.listed(selected(agents, AgentsQuery, given), AgentSerializer, given=given)


class AgentsView(Endpoint):
    @operation(
        "listAgents",
        "List the agents, newest first",
        description="An agent is listed once turns were posted with its `agent_id`.",
        scope=Scope.READ,
        bound=Bound.AGENTS,
        parameters=[AgentsQuery],
        answers={200: page_of(AgentSerializer)},
    )
    def get(self, request: Request) -> Response:
        return listed_agents(self, agents_of(self.caller))


class AgentView(Endpoint):
    @operation(
        "getAgent",
        "Get an agent",
        scope=Scope.READ,
        bound=Bound.AGENT,
        answers={200: AgentSerializer},
        problems=(404,),
    )
    def get(self, request: Request, agent_id: UUID) -> Response:
        return Response(self.shown(lookups.agent(tenant=self.tenant, agent_id=agent_id), AgentSerializer))

    @operation(
        "changeAgent",
        "Change an agent's switches and guidance",
        description="What an operator switched off, and guidance that an operator wrote, answer 409 `operator_word`.",
        scope=Scope.WRITE,
        bound=Bound.OWN_AGENT,
        request=AgentChangesSerializer,
        answers={200: AgentSerializer},
        problems=(404, 409),
    )
    def patch(self, request: Request, agent_id: UUID) -> Response:
        changes = self.body(AgentChangesSerializer)
        agent = lookups.agent(tenant=self.tenant, agent_id=agent_id)
        if "guidance" in changes and self.write_trust().trust != Trust.USER:
            raise OperatorWord(_GUIDANCE)
        changed = change_agent(agent=agent, changes=changes, actor=self.actor, now=self.now)
        return Response(self.shown(changed, AgentSerializer))
