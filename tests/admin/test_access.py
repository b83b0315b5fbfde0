"""Who may open which page: nobody without signing in, staff only what they were given."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib import admin as django_admin
from django.contrib.auth.models import Group
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django_q.models import Schedule

from memories.admin.site.site import HubAdminSite
from memories.models import (
    Agent,
    APIKey,
    Attachment,
    AuditEvent,
    Backup,
    DecayPass,
    DiaryEntry,
    Dream,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    GraphEntity,
    GraphTriple,
    Import,
    LoggedContext,
    ManagementKey,
    MemoryFile,
    MemoryGroup,
    Operator,
    PrivacyCase,
    ReviewItem,
    Session,
    Skill,
    StoreItem,
    Tenant,
    Trajectory,
    WebhookEndpoint,
)
from tests import factories
from tests.admin.cases import case_of
from tests.admin.pages import list_of, text_of

MODELS = [
    ReviewItem, EndUser, Fact, Episode, Session, ExtractionRun, DecayPass, APIKey, Tenant, AuditEvent, Operator, Group,
    PrivacyCase, Agent, LoggedContext, Trajectory, MemoryFile, Dream, StoreItem, DiaryEntry, GraphTriple, Attachment,
    MemoryGroup, Skill, WebhookEndpoint, ManagementKey, Backup,
    Import,
]  # fmt: skip


@pytest.fixture
def records(db: None) -> list[object]:
    """One of each, changed once, so that no list is empty."""
    person = factories.end_user()
    session = factories.session(person)
    key, _ = factories.api_key(person.tenant)
    item = factories.review_item(factories.fact(person, "Likes tea", status="pending"))
    run, decay_pass, episode = factories.run(session), factories.decay_pass(person.tenant), factories.episode(session)
    case = case_of(person)
    return [person, session, key, factories.fact(person), episode, item, run, decay_pass, person.tenant, case]


def test_a_list_opens_with_its_own_permission(staff_who_may: Callable[..., Client], records: list[object]) -> None:
    statuses = {
        model: staff_who_may(f"view_{model.__name__.lower()}").get(list_of(model)).status_code for model in MODELS
    }
    assert set(statuses.values()) == {200}, statuses


def test_an_unknown_record_is_not_found(admin: Client) -> None:
    for address in ("00000000-0000-7000-8000-000000000000", "nonsense", "%00"):
        assert admin.get(f"{list_of(Fact)}{address}/change/").status_code == 404


NONSENSE = [
    "q=%00",
    "q=" + "x" * 2000,
    "p=abc",
    "p=-1",
    "p=99999999999999999999",
    "o=9.-9.x",
    "all=1",
    "nothing=1",
    "tenant__id__exact=x",
    "end_user__id__exact=x",
    "status__exact=nothing",
    "status__exact=%00",
    "state=nothing",
    "quality=nothing",
    "session__id__exact=x",
    "kind__exact=%00",
    "tenant__slug=x",
    "end_user__external_id=x",
]


@pytest.mark.parametrize("model", [ReviewItem, Fact, Episode])
def test_nonsense_in_an_address_is_never_a_server_error(admin: Client, records: list[Any], model: type[Model]) -> None:
    answers = {query: admin.get(f"{list_of(model)}?{query}").status_code for query in NONSENSE}
    assert {query: status for query, status in answers.items() if status not in (200, 302, 400)} == {}


def test_the_sidebar_shows_what_one_may_see(staff_who_may: Callable[..., Client], admin: Client) -> None:
    index = reverse("admin:index")
    reader = text_of(staff_who_may("view_fact").get(index))
    assert "Audit trail" not in reader
    assert list_of(Fact) in reader
    assert "Audit trail" in text_of(admin.get(index))


def test_the_pages_of_other_apps_stay_out() -> None:
    assert isinstance(django_admin.site, HubAdminSite)
    assert not django_admin.site.is_registered(Schedule)
    # Who may see triples sees their entities: these have no permissions of their own.
    assert set(django_admin.site._registry) == {*MODELS, GraphEntity}
