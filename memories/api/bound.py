"""Keys for one person or one agent. Each operation declares by a policy how it honours them.

The address names an object: `guard` checks it before the view begins. The input names ids: `Endpoint.body()` and
`query()` fill in what is left out (`complete`) and check the rest (`hold`). A key for everybody costs nothing here.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from rest_framework.serializers import Serializer

from memories.api.authentication import Caller
from memories.exceptions import Fault, KeyBound, NotFound
from memories.models import (
    Agent,
    Dream,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    MemoryGroup,
    PrivacyCase,
    Session,
    Turn,
)


class Bound(StrEnum):
    """How an operation honours the person and the agent that a key is for."""

    # It names a person by `user_id`, and perhaps an agent. Others are refused; the key fills in what is left out.
    NAMED = "named"
    # The same for each of many conversations.
    CONVERSATIONS = "conversations"
    # It lists people: the key's own person alone.
    PEOPLE = "people"
    # It lists agents: the key's own agent alone, and none for a key for one person.
    AGENTS = "agents"
    # Its address names an object. One of another person, or of another agent's session, is not found.
    FACT = "fact"
    # It changes that fact. A key for an agent changes that agent's facts alone.
    OWN_FACT = "own_fact"
    SESSION = "session"
    TURN = "turn"
    EPISODE = "episode"
    DREAM = "dream"
    EXTRACTION = "extraction"
    CASE = "case"
    # It reads a group, or states a fact there: a group of which the key's own person is a member.
    GROUP = "group"
    # It decides who belongs to a group, for everybody: a key for one person or agent is refused.
    GROUPS = "groups"
    # It concerns the whole tenant: a key for one person or agent is refused.
    TENANT = "tenant"
    # It takes what many people said, or shows it: a key for one person or agent is refused.
    IMPORTS = "imports"
    AGENT = "agent"
    # It changes that agent, for everybody: a key for one person is refused.
    OWN_AGENT = "own_agent"
    # It names namespaces, which the view checks: those of the key's own person alone. A key for one agent is refused.
    STORE = "store"
    # It takes all of a person, of every agent: a key for one agent is refused.
    EXPORT = "export"
    # It names a person by `user_id`, and shows them all of themselves, of every agent.
    WHOLE_PERSON = "whole_person"


class NamedRow(NamedTuple):
    """A row that an address names: its parameter there, its model, and the look-up of its agent. One of another person,
    or of another agent, is not found. It is a policy itself, or what one below stands for."""

    parameter: str
    model: type[Model]
    agent: str = ""


_OBJECTS: Mapping[Bound, NamedRow] = {
    # visibility.py decides for every key which agents' facts it sees.
    Bound.FACT: NamedRow("fact_id", Fact),
    Bound.OWN_FACT: NamedRow("fact_id", Fact),
    Bound.SESSION: NamedRow("session_id", Session, "agent_id"),
    Bound.TURN: NamedRow("turn_id", Turn, "session__agent_id"),
    Bound.EPISODE: NamedRow("episode_id", Episode, "session__agent_id"),
    Bound.DREAM: NamedRow("dream_id", Dream, "agent_id"),
    Bound.EXTRACTION: NamedRow("run_id", ExtractionRun, "session__agent_id"),
    Bound.CASE: NamedRow("case_id", PrivacyCase),
    Bound.GROUP: NamedRow("group_id", MemoryGroup),
    Bound.EXPORT: NamedRow("case_id", PrivacyCase),
    Bound.AGENT: NamedRow("agent_id", Agent),
    Bound.OWN_AGENT: NamedRow("agent_id", Agent),
}
_OTHER_PERSON = "This key is for one person alone: name that one, or leave user_id out."
_OTHER_AGENT = "This key is for one agent alone: name that one, or leave agent_id out."
_EVERYBODY = "This key is for one person alone, and an agent's switches and guidance are for everybody."
_GROUPS = "This key is for one person or agent alone, and who belongs to a group concerns others."
_TENANT = "This key is for one person or agent alone, and this concerns everybody."
_IMPORTS = "This key is for one person or agent alone, and a file can hold what others said."
_STORE = "This key is for one agent alone, and items of the store are no agent's."
_EXPORT = "This key is for one agent alone, and an export tells of every one."
_PAGE = "This key is for one agent alone, and the page for the person tells of every one."


def guard(policy: Bound | NamedRow | None, caller: Caller, path: Mapping[str, Any]) -> None:
    """Check the object of the address against the key. Errors: NotFound, KeyBound (also without a policy)."""
    if not caller.is_bound:
        return
    _guard_policy(policy, caller)
    named = policy if isinstance(policy, NamedRow) else _OBJECTS.get(policy) if policy else None
    if named is None:
        return
    if not _is_within(named, caller, path[named.parameter]):
        raise NotFound
    if policy is Bound.EXPORT and caller.agent_id:
        raise KeyBound(_EXPORT)
    if policy is Bound.OWN_AGENT and caller.user_id:
        raise KeyBound(_EVERYBODY)


def _guard_policy(policy: Bound | NamedRow | None, caller: Caller) -> None:
    """Errors: KeyBound, where no bound key is let in, or none of an agent."""
    if policy is None:
        raise KeyBound
    if policy is Bound.STORE and caller.agent_id:
        raise KeyBound(_STORE)
    if policy is Bound.WHOLE_PERSON and caller.agent_id:
        raise KeyBound(_PAGE)
    if policy is Bound.GROUPS:
        raise KeyBound(_GROUPS)
    if policy is Bound.TENANT:
        raise KeyBound(_TENANT)
    if policy is Bound.IMPORTS:
        raise KeyBound(_IMPORTS)


def _is_within(named: NamedRow, caller: Caller, pk: UUID) -> bool:
    if named.model is Agent:
        return agents_of(caller).filter(pk=pk).exists()
    rows = named.model._default_manager.filter(tenant=caller.tenant, pk=pk)
    if caller.user_id:
        person = people_of(caller).values("pk")
        if named.model is MemoryGroup:
            return rows.filter(members__end_user__in=person).exists()
        rows = rows.filter(Q(end_user__in=person) | Q(end_user__merged_into__in=person))
    if caller.agent_id and named.agent:
        rows = rows.filter(**{named.agent: caller.agent_id})
    return rows.exists()


def people_of(caller: Caller) -> QuerySet[EndUser]:
    """The people whom the key is for."""
    people = EndUser.objects.of(caller.tenant).themselves()
    return people.called(caller.tenant, caller.user_id) if caller.user_id else people


def agents_of(caller: Caller) -> QuerySet[Agent]:
    """The agents that the key is told of: a key for one person is told of none but the agent that it is for, too."""
    agents = Agent.objects.filter(tenant=caller.tenant)
    if caller.agent_id:
        return agents.filter(agent_id=caller.agent_id)
    return agents.none() if caller.user_id else agents


def complete(expected: Serializer[Any], data: Any, caller: Caller, *, is_named: bool) -> Any:
    """The input, with the key's own ids where they are left out. `is_named`: another part names the person."""
    if not isinstance(data, Mapping):
        return data
    fields = expected.fields
    user_id = caller.user_id if "user_id" in fields and not is_named else ""
    agent_id = caller.agent_id if "agent_id" in fields and getattr(expected, "agent_of_key", False) else ""
    data = _with_ids(data, user_id=user_id, agent_id=agent_id)
    if "filters" in fields and caller.agent_id and isinstance(data.setdefault("filters", {}), Mapping):
        data["filters"] = _with_ids(data["filters"], agent_id=caller.agent_id)
    if "conversations" in fields and isinstance(data.get("conversations"), list):
        data["conversations"] = [
            _with_ids(one, user_id=caller.user_id, agent_id=caller.agent_id) if isinstance(one, Mapping) else one
            for one in data["conversations"]
        ]
    return data


def _with_ids(data: Mapping[str, Any], *, user_id: str = "", agent_id: str = "") -> dict[str, Any]:
    completed = dict(data)
    if user_id:
        completed.setdefault("user_id", user_id)
    # null means no agent, like one that is left out.
    if agent_id and completed.get("agent_id") is None:
        completed["agent_id"] = agent_id
    return completed


def check_bound_ids(given: dict[str, Any], caller: Caller, *, at: str) -> None:
    """Check the ids of a validated input against the key. `at` stands before the names of fields. Errors: KeyBound.

    The input then calls the person as the key does: another alias of theirs may lead elsewhere a moment later.
    """
    if not caller.is_bound:
        return
    if "user_id" in given:
        given["user_id"] = _own_person(given["user_id"], caller, f"{at}user_id")
    if "agent_id" in given:
        _require_own_agent(given["agent_id"], caller, f"{at}agent_id")
    if "filters" in given and "agent_id" in given["filters"]:
        _require_own_agent(given["filters"]["agent_id"], caller, f"{at}filters/agent_id")
    for index, one in enumerate(given.get("conversations", ())):
        place = f"{at}conversations/{index}/"
        _require_own_agent(one.agent_id, caller, f"{place}agent_id")
        given["conversations"][index] = replace(one, user_id=_own_person(one.user_id, caller, f"{place}user_id"))


def _own_person(user_id: str, caller: Caller, at: str) -> str:
    """How the key calls this person. Errors: KeyBound for another person, the same for an unknown one."""
    own = caller.user_id
    if not own or user_id == own:
        return own or user_id
    people = EndUser.objects.called(caller.tenant, user_id)
    if not people.filter(pk__in=people_of(caller).values("pk")).exists():
        raise KeyBound(_OTHER_PERSON, faults=[Fault(at, KeyBound.code, _OTHER_PERSON)])
    return own


def _require_own_agent(agent_id: str | None, caller: Caller, at: str) -> None:
    if caller.agent_id and agent_id != caller.agent_id:
        raise KeyBound(_OTHER_AGENT, faults=[Fault(at, KeyBound.code, _OTHER_AGENT)])
