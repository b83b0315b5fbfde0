"""Facts that share words with a question and are not served, each with the reason: why an agent did not know it."""

from datetime import datetime

from django.utils.translation import gettext as _

from memories import conf
from memories.admin.page import url_of
from memories.admin.seen import Look
from memories.admin.told import Memory
from memories.models import EndUser, Fact, MemoryScope, Status
from memories.pipeline import fact_units, found_facts
from memories.pipeline.asking import Question
from memories.pipeline.context import ContextRequest
from memories.pipeline.lone_units import today
from memories.scoring.ranking import Query, query_texts

MOST = 8


def unserved(person: EndUser, asked: ContextRequest, look: Look, *, now: datetime) -> list[Memory]:
    """The nearest first, by their words alone; none where nothing at all of the person is served."""
    if look.context.restricted or not look.context.serve:
        return []
    served = [one["id"] for one in (*look.context.items, *look.context.dropped) if one["kind"] == "fact"]
    others = found_facts.measured(Fact.objects.of(person.tenant, person).exclude(pk__in=served))
    rules = conf.rules(person.tenant)
    # Without the space: what agents are served from stays in memory as it is.
    question = Question(asked.query, [Query.of(text) for text in query_texts(asked.query)], None)
    store = fact_units.store(person, others, None, stamp=None, rules=rules, day=today(now))
    ranked = found_facts.rank(store, question)
    near = [others[place].id for place in ranked.best() if ranked.ranking.scores.lexical[place] > 0][:MOST]
    rows = Fact.objects.in_bulk(near)
    return [_memory(rows[pk], asked, rules, now=now) for pk in near if pk in rows]


def why_not(fact: Fact, asked: ContextRequest, rules: conf.Rules, *, now: datetime) -> str:
    """Why this fact is not served to who asks; the first reason that holds."""
    private = fact.agent_id not in ("", asked.agent_id) and fact.scope == MemoryScope.PRIVATE
    checks = (
        (fact.status == Status.PENDING, _("waits for review")),
        (fact.status != Status.ACTIVE, fact.get_status_display()),
        (fact.expires_at is not None and fact.expires_at <= now, _("expired")),
        (fact.confidence < rules.served_confidence, _("less sure than what is served")),
        (private, _("private to the agent %(agent)s") % {"agent": fact.agent_id}),
        (fact.allowed_users and asked.user_id not in fact.allowed_users, _("for other people only")),
        (fact.allowed_roles, _("for other roles only")),
    )
    return next((reason for holds, reason in checks if holds), _("changed meanwhile"))


def _memory(fact: Fact, asked: ContextRequest, rules: conf.Rules, *, now: datetime) -> Memory:
    reason = why_not(fact, asked, rules, now=now)
    return Memory("fact", fact.pk, fact, fact.content, url_of(fact), reason=reason)
