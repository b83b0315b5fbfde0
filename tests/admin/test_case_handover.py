"""A case whose export is made is open to staff until somebody fetched the file or it has expired."""

from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.admin.cases import board as case_board
from memories.admin.site import sidebar
from memories.models import CaseState, PrivacyCase
from tests import factories
from tests.admin.cases import case_of
from tests.admin.pages import list_of, page_of, text_of

pytestmark = pytest.mark.django_db

WEEK = timedelta(days=7)


def made_for(type_: str, *, expires_at: datetime, state: str = "ready") -> PrivacyCase:
    case = case_of(factories.end_user(), "completed", type=type_, days=-2.5)
    factories.privacy_export(case, state=state, content=b"PK" if state == "ready" else b"", expires_at=expires_at)
    return case


@pytest.mark.parametrize("type_", ["access", "portability"])
def test_what_was_made_waits_to_be_handed_over_and_its_days_go_on(type_: str, admin: Client) -> None:
    case = made_for(type_, expires_at=timezone.now() + WEEK)
    assert case.state == CaseState.COMPLETED
    board = case_board.board(PrivacyCase.objects.all(), now=timezone.now())
    assert [(one.title, [card.case for card in one.cards]) for one in board.flow if one.count] == [
        ("To hand over", [case])
    ]
    assert (board.open, board.overdue, board.closed) == (1, 1, [])
    assert case.end_user
    board_address = reverse("admin:memories_privacycase_board")
    for page in (page_of(case), page_of(case.end_user), list_of(PrivacyCase), board_address):
        assert "overdue" in text_of(admin.get(page))
    assert admin.get(reverse("admin:index")).context["cases"]["overdue"] == 1
    for tab, there in {"open": 1, "overdue": 1, "handover": 1, "closed": 0, "running": 0}.items():
        assert admin.get(f"{list_of(PrivacyCase)}?tab={tab}").context["cl"].result_count == there, tab


@pytest.mark.parametrize("end", ["taken", "expired", "out of time"])
def test_it_is_closed_once_the_file_is_fetched_or_has_expired(end: str, admin: Client) -> None:
    now = timezone.now()
    state, left = ("ready", -WEEK) if end == "out of time" else (end, WEEK)
    case = made_for("access", state=state, expires_at=now + left)
    board = case_board.board(PrivacyCase.objects.all(), now=now)
    assert (board.open, [card.case for card in board.closed]) == (0, [case])
    assert "overdue" not in text_of(admin.get(page_of(case)))
    assert admin.get(reverse("admin:index")).context["cases"]["open"] == 0
    assert admin.get(f"{list_of(PrivacyCase)}?tab=closed").context["cl"].result_count == 1


def test_the_menu_counts_it(admin: Client) -> None:
    case = made_for("access", expires_at=timezone.now() + WEEK)
    operator = factories.operator(is_superuser=True)

    def badges() -> list[str]:
        # Of a request of its own each time: a request keeps its counts.
        request = admin.get(reverse("admin:index")).wsgi_request
        request.user = operator
        items = [item for group in sidebar.navigation(request) for item in group["items"]]
        return [item["badge"] for item in items if "badge" in item]

    assert badges() == ["1"]
    case.exports.update(state="taken")
    assert badges() == []


def test_a_card_leads_to_its_case_by_the_name_too(admin: Client) -> None:
    person = factories.end_user(display_name="Ada")
    case = case_of(person)
    page = text_of(admin.get(reverse("admin:memories_privacycase_board")))
    assert f'<p class="case-whom"><a href="{page_of(case)}"><bdi>Ada</bdi></a>' in page
    assert page_of(person) not in page
