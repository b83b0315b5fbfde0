"""Who may see which memory (rules.md, 5.8 and 8.2), said once.

A condition is a Q. FactQuerySet and EpisodeQuerySet filter by it. A statement written by hand contains the same
condition, with named parameters for its values (hand_written.condition). Conversations serves indexes as well.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime
from enum import nonmember
from typing import Any, NamedTuple, Self

import numpy as np
from django.contrib.postgres.expressions import ArraySubquery
from django.db import models
from django.db.models import BooleanField, Exists, ExpressionWrapper, F, Max, OuterRef, Q, Subquery, Window
from django.db.models.lookups import LessThanOrEqual
from django.utils.translation import gettext_lazy as _
from numpy.typing import NDArray

from memories.models.conversations.conversations import SENT_AT, Session
from memories.models.people.people import EndUser
from memories.models.people.tenants import MemoryOf, Tenant


class Status(models.TextChoices):
    ACTIVE = "active", _("Active")
    PENDING = "pending", _("Pending")
    SUPERSEDED = "superseded", _("Superseded")
    REJECTED = "rejected", _("Rejected")
    ARCHIVED = "archived", _("Archived")
    TRASHED = "trashed", _("In the trash")
    # What is served, or waits to be.
    LIVE = nonmember((ACTIVE[0], PENDING[0]))


class MemoryScope(models.TextChoices):
    PRIVATE = "private", _("Private")
    SHARE = "share", _("Share")
    PUBLIC = "public", _("Public")


class Viewer(NamedTuple):
    """For whom a person's facts are read: an agent ("" for none) and roles; `as_of`: those that were true then."""

    agent_id: str = ""
    roles: Sequence[str] = ()
    as_of: datetime | None = None


# People whose memories may be served. A tenant can also switch all of its people off (Tenant.serve).
SERVED_PERSON = Q(serve=True, restricted_at=None)


def active(now: datetime) -> Q:
    """Facts and episodes that are neither held, ended nor in the trash, and have not expired."""
    return Q(status=Status.ACTIVE) & unexpired(now)


def unexpired(moment: datetime) -> Q:
    return Q(expires_at=None) | Q(expires_at__gt=moment)


def held_at(moment: datetime) -> Q:
    """Facts that were true at that moment as far as it is known now, also if they ended since; none in the trash."""
    return _lasted(moment) & unexpired(moment)


def _lasted(moment: datetime) -> Q:
    still = Q(status=Status.ACTIVE) & (Q(valid_to=None) | Q(valid_to__gt=moment))
    ended = Q(status__in=[Status.SUPERSEDED, Status.ARCHIVED], valid_to__gt=moment)
    return (still | ended) & Q(valid_from__lte=moment)


def for_agent(agent_id: str) -> Q:
    """The person's own facts, those of the agent, and what other agents share."""
    return Q(agent_id="") | Q(agent_id=agent_id) | ~Q(scope=MemoryScope.PRIVATE)


def for_names_of(person_id: uuid.UUID) -> Q:
    """Facts for everybody, and those for one of the person's external ids, aliases included."""
    names = EndUser.objects.with_aliases(person_id).order_by().values("external_id")
    return Q(allowed_users=[]) | Q(allowed_users__overlap=ArraySubquery(names))


def for_roles(roles: Sequence[str]) -> Q:
    # An array is a list for psycopg.
    roles = list(roles) if isinstance(roles, tuple) else roles
    return Q(allowed_roles=[]) | Q(allowed_roles__overlap=roles)


def own(tenant_id: uuid.UUID, person_id: uuid.UUID) -> Q:
    return Q(tenant=tenant_id, end_user=person_id)


def public_beside(tenant_id: uuid.UUID, person_id: uuid.UUID) -> Q:
    """What operators made public of other people of the tenant, as far as these may be served themselves."""
    # Asked of the few public facts one by one: a join might read all people.
    owner = EndUser.objects.filter(pk=OuterRef("end_user")).order_by()
    served = Subquery(owner.values(served=ExpressionWrapper(SERVED_PERSON, BooleanField())), BooleanField())
    return Q(tenant=tenant_id, scope=MemoryScope.PUBLIC) & ~Q(end_user=person_id) & Q(served)


def own_or_public(tenant_id: uuid.UUID, person_id: uuid.UUID) -> Q:
    """Facts that may have been served to the person: to read again what served_facts() let through."""
    return Q(tenant=tenant_id) & (Q(end_user=person_id) | Q(scope=MemoryScope.PUBLIC))


def served_facts(viewer: Viewer, *, person_id: uuid.UUID, least_confidence: float, now: datetime) -> dict[str, Q]:
    """The conditions of serving a fact, own or public, each with a name for pages that say which of them fails."""
    moment = viewer.as_of
    return {
        "status": _lasted(moment) if moment else Q(status=Status.ACTIVE),
        "expiry": unexpired(moment or now),
        "confidence": Q(confidence__gte=least_confidence),
        "agent": for_agent(viewer.agent_id),
        "users": for_names_of(person_id),
        "roles": for_roles(viewer.roles),
    }


def latest(agent_id: Any, shown: models.QuerySet[Any]) -> Q:
    """Of what `shown` has of the person's own and of that agent's, for each key, and of two that contradict each other,
    what was said last; on a tie the agent's. What an operator confirmed, pinned or locked stays. The other agents are
    told the person's own."""
    stated = shown.filter(agent_id__in=["", agent_id]).exclude(key="").exclude(value="")
    of_agent = Q(agent_id=agent_id) & ~Q(agent_id="")
    # Most people have no facts of an agent: the rest is not asked of them then.
    stated = stated.filter(Exists(shown.filter(of_agent).exclude(key="")))

    def last(of_whom: Q) -> Window:
        # In one pass: joined, PostgreSQL would compare all with all, as it has no samples of these columns.
        newest = Max("last_confirmed_at", filter=of_whom)
        return Window(newest, partition_by=[F("end_user"), F("category"), F("key")])

    of_keys = stated.annotate(agents=last(~Q(agent_id="")), persons=last(Q(agent_id="")))
    late_agent, late_person = Q(agents__gte=F("last_confirmed_at")), Q(persons__gt=F("last_confirmed_at"))
    replaced = of_keys.filter(Q(agent_id="") & late_agent | ~Q(agent_id="") & late_person)
    current = ~Q(pk__in=replaced.order_by().values("pk"))
    for contradicted in _contradicted(shown, of_agent):
        current &= ~Q(pk__in=contradicted)
    return Q(binding=True) | Q(pinned=True) | Q(locked=True) | current


def _contradicted(shown: models.QuerySet[Any], of_agent: Q) -> list[models.QuerySet[Any]]:
    """What a judgement found to contradict what was said later: of the person's own, and of the agent's. Lower trust
    does not silence higher trust."""
    persons = shown.filter(agent_id="").order_by().values("pk")
    stated_at = F("relations__target__last_confirmed_at")
    trusted = Q(trust__in=["operator", "user"]) | Q(trust=F("relations__target__trust"))

    def pairs(*more: Q) -> models.QuerySet[Any]:
        # In one filter: another one would be about other relations of the fact.
        contradicts = Q(relations__type="contradicts", relations__target__in=persons)
        return shown.filter(of_agent, contradicts, *more).order_by()

    return [
        pairs(trusted, Q(last_confirmed_at__gte=stated_at)).values("relations__target"),
        pairs(Q(last_confirmed_at__lt=stated_at)).values("pk"),
    ]


def served_episodes(*, least_importance: float, now: datetime) -> Q:
    """Decay only lowers importance: an episode below the threshold stays below it."""
    return active(now) & Q(importance__gt=least_importance)


class Conversations(NamedTuple):
    """What is shown of conversations: to which agent ("" for none), whose memory a session becomes if it was opened
    without a choice, and by when it was said (None: until now)."""

    agent_id: str = ""
    by_default: str = MemoryOf.PERSON
    as_of: datetime | None = None

    @classmethod
    def of(cls, tenant: Tenant, *, agent_id: str, as_of: datetime | None = None) -> Self:
        return cls(agent_id, tenant.memory_of, as_of)

    def turns(self, person_id: uuid.UUID) -> Q:
        hidden = Session.objects.filter(end_user=person_id).exclude(agent_id__in=["", self.agent_id])
        is_open = self.by_default == MemoryOf.PERSON
        of_agent_alone = Q(memory_of=MemoryOf.AGENT) if is_open else ~Q(memory_of=MemoryOf.PERSON)
        shown = Q(left_at=None) & ~Q(session__in=hidden.filter(of_agent_alone))
        return shown & Q(LessThanOrEqual(SENT_AT, self.as_of)) if self.as_of else shown

    def include(self, agent_id: str, memory_of: str, *, sent_at: datetime) -> bool:
        return self.include_session(agent_id, memory_of) and (self.as_of is None or sent_at <= self.as_of)

    def include_session(self, agent_id: str, memory_of: str) -> bool:
        """Of a session of that agent, which was opened with that choice ("" for none)."""
        return agent_id in ("", self.agent_id) or (memory_of or self.by_default) == MemoryOf.PERSON

    def mask(
        self, sessions: Sequence[tuple[str, str]], session_of: NDArray[np.int32], times: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Which turns of an index are shown: agent and choice of each session, each turn's session and seconds since
        1970."""
        shown = np.ones(len(times), np.bool_)
        included = [self.include_session(agent_id, memory_of) for agent_id, memory_of in sessions]
        if not all(included):
            shown &= np.array(included, np.bool_)[session_of]
        if self.as_of:
            shown &= times <= self.as_of.timestamp()
        return shown
