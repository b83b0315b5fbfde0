"""Whether anything of a person may be served at all."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from memories.db import binary_rows
from memories.embedding import spaces
from memories.models import EmbeddingSpace, EndUser, Tenant
from memories.models.hand_written import condition, read, selected
from memories.models.memories.visibility import SERVED_PERSON

_PERSON = ("id", "tenant_id", "external_id", "time_zone", "serve", "restricted_at", "generation")
_EPISODES = """
    EXISTS (SELECT 1 FROM memories_episode e
        WHERE e.tenant_id = %(tenant)s AND e.end_user_id = p.id AND e.status = 'active')
"""
_GROUPS = "EXISTS (SELECT 1 FROM memories_groupmember m WHERE m.tenant_id = %(tenant)s AND m.end_user_id = p.id)"
# Whether a statement about the person can have ended: one that was corrected has another version. Each half has an
# index with few rows, so that PostgreSQL keeps one plan for all people.
HAS_ENDED = """
    (EXISTS (SELECT 1 FROM memories_fact f WHERE f.tenant_id = %(tenant)s AND f.end_user_id = p.id
        AND f.status IN ('superseded', 'trashed'))
    OR EXISTS (SELECT 1 FROM memories_fact f WHERE f.tenant_id = %(tenant)s AND f.end_user_id = p.id
        AND f.status = 'active' AND f.version > 1))
"""
# An operator has switched off what the agent that asks is told.
UNTOLD = """
    EXISTS (SELECT 1 FROM memories_agent a WHERE a.tenant_id = %(tenant)s AND a.agent_id = %(agent)s AND NOT a.recall)
"""
# The person with this id or alias: EndUserQuerySet.called() in SQL. Not a join: on a young database PostgreSQL believes
# that there are few people, and would compare all with all of them until it has counted again.
CALLED = """
    p.tenant_id = %(tenant)s AND p.id = (SELECT coalesce(named.merged_into_id, named.id) FROM memories_enduser named
        WHERE named.tenant_id = %(tenant)s AND named.external_id = %(user)s)
"""
# By hand, because every context and every search begins with it.
_FIND = f"""
    SELECT {selected("p", _PERSON)}, {UNTOLD}, {_EPISODES}, {_GROUPS}, {HAS_ENDED}, {spaces.SELECTED}
    FROM memories_enduser p LEFT JOIN memories_embeddingspace space ON {spaces.IS_SERVING}
    WHERE {CALLED}
"""  # noqa: S608  (columns of our own models)
_FIND_WITH_PROFILE = f"""
    SELECT {selected("p", _PERSON)}, {UNTOLD}, {_EPISODES}, {_GROUPS}, {HAS_ENDED}, {spaces.SELECTED},
        s.section, s.id, s.summary, s.actor_kind, s.updated_at
    FROM memories_enduser p LEFT JOIN memories_embeddingspace space ON {spaces.IS_SERVING}
    LEFT JOIN memories_profilesection s ON s.tenant_id = %(tenant)s AND s.end_user_id = p.id AND s.summary <> ''
        AND s.agent_id IN ('', %(agent)s) AND {condition(EndUser, SERVED_PERSON, alias="p")}
    WHERE {CALLED} ORDER BY s.agent_id
"""  # noqa: S608  (columns of our own models)


@dataclass(frozen=True)
class Audience:
    """The person whose memories may be served; None for an unknown, restricted or switched-off one.

    `has_episodes`, `has_groups`, `has_ended`: whether to read them, and what does not hold any more, at all. `space`:
    where the query's vector lies. `profile`: the person's own sections and then the agent's, if asked for.
    """

    person: EndUser | None = None
    has_episodes: bool = False
    has_groups: bool = False
    has_ended: bool = False
    space: EmbeddingSpace | None = None
    restricted: bool = False
    serve: bool = True
    profile: list["ServedSection"] = field(default_factory=list)


class ServedSection(NamedTuple):
    """A section of the profile; `actor_kind`: who wrote it last, at `updated_at`."""

    section: str
    id: uuid.UUID
    summary: str
    actor_kind: str
    updated_at: datetime


def audience(*, tenant: Tenant, user_id: str, with_profile: bool = False, agent_id: str = "") -> Audience:
    """The person of `user_id`, if their memories may be served to this agent; one statement. The profile is also that
    of the agent.
    """
    given = {"tenant": tenant.pk, "user": user_id, "agent": agent_id}
    found = binary_rows.fetched(_FIND_WITH_PROFILE if with_profile else _FIND, given)
    if not found:
        return Audience()
    values = iter(found[0])
    person = read(EndUser, _PERSON, values)
    if person.restricted_at:
        return Audience(restricted=True)
    is_untold, has_episodes, has_groups, has_ended = islice(values, 4)
    if is_untold or not (tenant.serve and person.serve):
        return Audience(serve=False)
    person.tenant = tenant
    sections = [one for row in found if (one := ServedSection(*row[-5:])).section] if with_profile else []
    return Audience(person, has_episodes, has_groups, has_ended, spaces.of_row(values), profile=sections)
