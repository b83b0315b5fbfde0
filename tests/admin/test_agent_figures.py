"""What an agent did over 7, 30 and 90 days, and the roll back of what it wrote, from its page."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.admin.tenants.agent_figures import SPANS, figures_of
from memories.audit import Actor
from memories.curation.facts.editing import correct_fact
from memories.curation.reverting import revert
from memories.models import Agent, ChangeSet, Fact, Session, Turn
from tests import factories
from tests.admin.pages import list_of, page_of, text_of

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def session(db: None) -> Session:
    talk = factories.session(factories.end_user(), [("user", "Hello"), ("assistant", "Hi")], agent_id="sales")
    # Its first turn was posted twenty days ago, and with it the session began.
    Session.objects.filter(pk=talk.pk).update(created_at=timezone.now() - 20 * DAY, last_turn_at=timezone.now())
    Turn.objects.filter(session=talk, number=1).update(created_at=timezone.now() - 20 * DAY)
    return talk


@pytest.fixture
def agent(session: Session) -> Agent:
    return Agent.objects.get(agent_id="sales")


def made(session: Session, days_ago: int, **over: Any) -> Fact:
    run = factories.run(session, started_at=timezone.now() - days_ago * DAY)
    said = over.pop("content", f"Told {days_ago} days ago")
    return factories.fact(session.end_user, said, extraction=run, now=timezone.now() - days_ago * DAY, **over)


def spans_of(agent: Agent, figure: str) -> list[int]:
    found = figures_of([agent], SPANS, now=timezone.now())[agent.tenant_id, agent.agent_id]
    return [found[days][figure] for days in SPANS]


def test_each_period_counts_what_lies_in_it(session: Session, agent: Agent) -> None:
    for days_ago, status in ((1, "active"), (10, "rejected"), (60, "pending"), (200, "rejected")):
        made(session, days_ago, status=status)
    # Another agent's, and nobody's.
    other = factories.session(session.end_user, agent_id="support")
    factories.fact(session.end_user, "Of support", extraction=factories.run(other), now=timezone.now())
    factories.fact(session.end_user, "Of nobody", now=timezone.now())
    assert spans_of(agent, "turns") == [1, 2, 2]
    assert spans_of(agent, "people") == [1, 1, 1]
    assert spans_of(agent, "facts") == [1, 2, 3]
    assert spans_of(agent, "rejected") == [0, 1, 1]
    assert spans_of(agent, "pending") == [0, 0, 1]


def test_turns_of_sessions_within_a_period_are_those_that_are_kept(session: Session, agent: Agent) -> None:
    now = timezone.now()
    within_it = factories.session(
        session.end_user, [("user", "a"), ("user", "b"), ("user", "c")], agent_id="sales", session_id="2"
    )
    for days, number, deleted in ((10, within_it, 1), (20, session, 1)):
        Session.objects.filter(pk=number.pk).update(created_at=now - days * DAY, deleted_number=deleted)
    Turn.objects.filter(session=session, number=1).delete()
    Turn.objects.filter(session=within_it).update(created_at=now - 10 * DAY)
    Turn.objects.filter(session=within_it, number=1).delete()
    Session.objects.filter(pk=within_it.pk).update(last_turn_at=now - 10 * DAY)
    # Of everybody else's nothing is left: that is no talk.
    gone = factories.session(factories.end_user(session.tenant), [("user", "a")], agent_id="sales", session_id="3")
    Session.objects.filter(pk=gone.pk).update(deleted_number=1, last_turn_at=now)
    Turn.objects.filter(session=gone).delete()
    assert spans_of(agent, "turns") == [1, 3, 3]
    assert spans_of(agent, "people") == [1, 1, 1]


def test_corrections_are_those_of_operators_that_stand(session: Session, agent: Agent) -> None:
    fact, actor = made(session, 10), Actor.operator(factories.operator())
    given: dict[str, Any] = {"tenant": None, "content": "Lives in Utrecht", "reason": "Phoned", "actor": actor}
    correct_fact(fact_id=fact.pk, now=timezone.now() - 9 * DAY, **given)
    assert spans_of(agent, "corrections") == [0, 1, 1]
    revert(change_set=ChangeSet.objects.get().pk, actor=actor, now=timezone.now())
    assert spans_of(agent, "corrections") == [0, 0, 0]


def test_the_list_shows_the_period_that_is_chosen(session: Session, agent: Agent, admin: Client) -> None:
    made(session, 60)
    for query, facts in (("", 0), ("?days=7", 0), ("?days=90", 1), ("?days=x", 0)):
        shown: Any = admin.get(f"{list_of(Agent)}{query}")
        assert [row.figures["facts"] for row in shown.context_data["cl"].result_list] == [facts]
    assert 'aria-current="page">Last 90 days' in text_of(admin.get(f"{list_of(Agent)}?days=90"))


def test_its_page_leads_to_a_roll_back_of_what_it_wrote(session: Session, agent: Agent, admin: Client) -> None:
    for fact in (made(session, 2), made(session, 40, content="Old")):
        fact.revisions.create(
            tenant_id=fact.tenant_id,
            version=1,
            verb="add",
            actor_kind="run",
            actor_id=str(fact.extraction_id),
            created_at=fact.created_at,
        )
    page: Any = admin.get(page_of(agent))
    since = dict(page.context_data["roll_back"])[7]
    sent = {"tenant": agent.tenant_id, "agent": agent.agent_id, "since": since}
    preview: Any = admin.post(reverse("admin:rollback"), sent)
    assert preview.context_data["preview"].counts["trashed"] == 1


def test_roll_back_is_offered_to_who_may(agent: Agent, staff_who_may: Callable[..., Client], admin: Client) -> None:
    assert reverse("admin:rollback") in text_of(admin.get(page_of(agent)))
    assert "Another period" not in text_of(staff_who_may("view_agent").get(page_of(agent)))
