"""Who clicks on a figure gets as many rows as it said: tiles of the dashboard, parked work, a person's page, a role."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from memories.models import EndUser, Fact, SessionQueue, WorkingMemory
from tests import factories
from tests.admin.cases import case_of
from tests.admin.pages import page_of, text_of

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def counted(client: Client, address: str) -> int:
    """How many rows there are behind a link."""
    page: Any = client.get(address.replace("&amp;", "&"))
    assert page.status_code == 200, address
    if "board" in page.context:
        return int(page.context["board"].open)
    return int(page.context["cl"].result_count)


def links_of(html: str) -> list[tuple[str, int]]:
    """The links whose text has a figure, and the tiles: a link over a figure."""
    tiles = re.findall(r'<div class="hub-card hub-figure"><a class="hub-whole" (.*?)</strong>', html, re.DOTALL)
    links = [*tiles, *re.findall(r"<a (.*?)</a>", re.sub(r'<a class="hub-whole".*?</a>', "", html), re.DOTALL)]
    found = []
    for link in links:
        address = re.search(r'href="([^"]*)"', link)
        figure = re.search(r"\d[\d,]*", strip_tags("<a " + link).strip())
        # Names of records hold figures, too.
        is_list = address and re.search(r"/admin/\w+/\w+/(board/)?(\?|$)", address[1])
        if address and is_list and figure:
            found.append((address[1], int(figure[0].replace(",", ""))))
    return found


@pytest.fixture
def person() -> EndUser:
    """One of two tenants with some of each, and with neighbours of each that its figures leave out."""
    now, person, other = timezone.now(), factories.end_user(), factories.end_user()
    restricted = factories.end_user(person.tenant, restricted_at=now)
    factories.end_user(person.tenant, merged_into=person)
    for number in range(3):
        factories.fact(person, f"Active {number}")
    factories.fact(person, "Trashed", status="trashed")
    factories.fact(person, "Expired", expires_at=now - DAY)
    pending = [factories.fact(person, f"Pending {number}", status="pending") for number in range(2)]
    for fact in pending:
        factories.review_item(fact)
        factories.review_item(fact, kind="flagged", reason="instructions")
    factories.review_item(pending[0], state="approved")
    for one, pinned in ((person, False), (person, True), (restricted, False), (other, False)):
        fact = factories.fact(one, f"Faded {pinned}", pinned=pinned)
        Fact.objects.filter(pk=fact.pk).update(forget_at=now - DAY)
    talks = [factories.session(person) for _ in range(6)]
    due = [
        (now - DAY, None),
        (now - timedelta(seconds=5), None),
        (now + DAY, None),
        (None, now),
        (None, now),
        (None, None),
    ]
    for talk, (due_at, parked_at) in zip(talks, due, strict=True):
        failure = "model_refused" if talk == talks[3] else "model_timeout" if parked_at else ""
        SessionQueue.objects.filter(pk=talk.pk).update(due_at=due_at, parked_at=parked_at, failure=failure)
    for talk, failure in ((talks[0], "model_timeout"), (talks[1], "model_refused"), (talks[2], "model_refused")):
        WorkingMemory.objects.filter(session=talk).update(parked_at=now, failure=failure)
    for status, ago in (("failed", 1), ("parked", 2), ("failed", 50), ("committed", 1)):
        factories.run(talks[0], status=status, started_at=now - timedelta(hours=ago))
    factories.decay_pass(person.tenant, state="held", started_at=now - 3 * DAY)
    factories.decay_pass(person.tenant, state="done", started_at=now - DAY)
    factories.decay_pass(other.tenant, state="held", started_at=now - DAY)
    for state, days in (("received", 20), ("verified", -2), ("on_hold", 1), ("refused", -9), ("completed", -9)):
        case_of(person, state, days=days)
    factories.privacy_export(case_of(person, "completed", type="access", days=-1), expires_at=now + DAY)
    return person


def test_each_tile_of_the_dashboard_leads_to_what_it_counts(admin: Client, person: EndUser) -> None:
    links = links_of(text_of(admin.get(reverse("admin:figures"))))
    assert [(address, figure) for address, figure in links if counted(admin, address) != figure] == []
    # Each is told apart from the list without its filter.
    figures = dict(links)
    lists = {name: reverse(f"admin:memories_{name}_changelist") for name in ("session", "fact", "extractionrun")}
    assert figures[f"{lists['session']}?tab=queued"] == 3
    assert figures[f"{lists['session']}?tab=due"] == 2
    assert figures[f"{lists['session']}?tab=overdue"] == 1
    assert figures[f"{lists['session']}?tab=parked"] == 2
    assert figures[f"{lists['session']}?tab=window_parked"] == 3
    assert figures[f"{lists['extractionrun']}?tab=failed_today"] == 2
    assert figures[f"{lists['fact']}?tab=next_pass"] == 2
    assert figures[f"{reverse('admin:memories_decaypass_changelist')}?tab=held"] == 1
    assert figures[reverse("admin:memories_privacycase_board")] == 4


def test_parked_work_leads_to_that_of_its_reason(admin: Client, person: EndUser) -> None:
    links = [link for link in links_of(text_of(admin.get(reverse("admin:parked")))) if "=parked:" in link[0]]
    assert sorted(figure for _, figure in links) == [1, 1, 1, 2]
    assert [(address, figure) for address, figure in links if counted(admin, address) != figure] == []


def test_a_persons_page_leads_to_what_it_counts(admin: Client, person: EndUser) -> None:
    page = text_of(admin.get(page_of(person)))
    tally = page[page.index("hub-tally") :]
    links = links_of(tally[: tally.index("</dl>")])
    assert len(links) >= 5
    assert [(address, figure) for address, figure in links if counted(admin, address) != figure] == []


def test_a_role_leads_to_its_members(admin: Client) -> None:
    group = Group.objects.create(name="night shift")
    factories.operator().groups.add(group)
    factories.operator()
    page = text_of(admin.get(reverse("admin:auth_group_change", args=[group.pk])))
    links = [link for link in links_of(page) if "groups__id__exact" in link[0]]
    assert [figure for _, figure in links] == [1]
    assert counted(admin, links[0][0]) == 1
