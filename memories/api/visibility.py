"""Which facts a key can see: those that a context for the given roles and agent could serve, in any state.

The rule holds for lists, for single facts and their history, and for every change. The scope `read_all` sees all facts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from django.db.models import Prefetch

from memories.api.authentication import Caller
from memories.models import EndUser, Fact, FactQuerySet, FactRelation, Scope


@dataclass(frozen=True)
class FactVisibility:
    """For which agent ("" for none) and roles a caller asks; `agent_only`: the key is for that agent."""

    agent_id: str
    roles: tuple[str, ...]
    sees_all: bool
    agent_only: bool

    @classmethod
    def of(cls, caller: Caller, query: Mapping[str, Any]) -> Self:
        """As the query says; a key for one agent always asks for that agent."""
        return cls(
            agent_id=caller.agent_id or query.get("agent_id") or "",
            roles=tuple(query.get("roles", ())),
            sees_all=Scope.READ_ALL in caller.key.scopes,
            agent_only=bool(caller.agent_id),
        )

    def filter(self, facts: FactQuerySet, person: EndUser) -> FactQuerySet:
        """The visible ones of the person's facts."""
        if self.sees_all:
            return facts.for_agent(self.agent_id) if self.agent_only else facts
        return facts.visible_to(person, agent_id=self.agent_id, roles=self.roles)

    def of_agents(self, facts: FactQuerySet, person: EndUser) -> FactQuerySet:
        """What the caller could see of the person's facts if it asked for each agent that its key is for."""
        if self.agent_only or self.sees_all:
            return self.filter(facts, person)
        return facts.open_to(person, roles=self.roles)

    def relations(self, person: EndUser) -> Prefetch[str]:
        """What the person's visible facts state of a fact, beside that fact."""
        seen = self.filter(Fact.objects.filter(tenant=person.tenant_id, end_user=person), person)
        rows = FactRelation.objects.filter(fact__in=seen.order_by().values("pk"))
        return Prefetch("told_by", queryset=rows, to_attr="relations_to_it")

    def includes(self, fact: Fact) -> bool:
        return self.filter(Fact.objects.filter(pk=fact.pk), fact.end_user).exists()
