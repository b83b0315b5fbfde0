"""The board and the list of privacy cases: where each stands, how urgent it is, and whose it is."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from memories.admin.cases import board as case_board
from memories.admin.cases.wording import days_left
from memories.admin.site import sidebar
from memories.models import Operator, PrivacyCase
from tests import factories
from tests.admin.cases import case_of
from tests.admin.conftest import signed_in
from tests.admin.pages import HOSTILE, list_of, page_of, shows_harmless, text_of
from tests.admin.test_tenant_scope import limited

pytestmark = pytest.mark.django_db


def board_address(query: str = "") -> str:
    return reverse("admin:memories_privacycase_board") + query


def test_an_open_case_stands_in_its_column() -> None:
    states = ("received", "verified", "scoped", "approved", "running", "verifying", "failed", "on_hold")
    for state in states:
        case_of(factories.end_user(), state)
    board = case_board.board(PrivacyCase.objects.all(), now=timezone.now())
    columns = (*board.flow, *board.stopped)
    assert {one.title: {card.case.state for card in one.cards} for one in columns if one.count} == {
        "Received": {"received"}, "Verified": {"verified"}, "Counted": {"scoped"}, "Approved": {"approved"},
        "Running": {"running", "verifying"}, "Failed": {"failed"}, "On hold": {"on_hold"},
    }  # fmt: skip
    assert board.open == len(states)


def test_what_is_closed_is_folded_for_thirty_days() -> None:
    now = timezone.now()
    cases = [
        case_of(factories.end_user(), state, completed_at=now - timedelta(days=days))
        for days in (29, 31)
        for state in ("completed", "refused")
    ]
    board = case_board.board(PrivacyCase.objects.all(), now=now)
    assert {card.case for card in board.closed} == set(cases[:2])
    assert board.open == 0


def test_the_soonest_due_is_first_and_a_column_has_an_end(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    person = factories.end_user()
    made = [case_of(person, days=days) for days in (9, -3, 1)]
    monkeypatch.setattr(case_board, "MOST", 2)
    board = case_board.board(PrivacyCase.objects.all(), now=timezone.now())
    received = board.flow[0]
    assert [card.case for card in received.cards] == [made[1], made[2]]
    assert (received.count, received.more, board.overdue, board.urgent) == (3, 1, 1, 1)
    assert "?state__exact=received" in text_of(admin.get(board_address()))


@pytest.mark.parametrize(
    ("due", "says", "level"),
    [
        (datetime(2027, 3, 22, 9, tzinfo=UTC), "12 days left", "ok"),
        # Received a moment ago: the whole month is left, not one day less.
        (datetime(2027, 4, 10, 11, 59, tzinfo=UTC), "31 days left", "ok"),
        (datetime(2027, 3, 11, 9, tzinfo=UTC), "1 day left", "urgent"),
        (datetime(2027, 3, 10, 23, tzinfo=UTC), "due today", "urgent"),
        (datetime(2027, 3, 10, 9, tzinfo=UTC), "overdue since today", "overdue"),
        (datetime(2027, 3, 9, 23, tzinfo=UTC), "overdue by 1 day", "overdue"),
        (datetime(2027, 3, 7, 9, tzinfo=UTC), "overdue by 3 days", "overdue"),
    ],
)
def test_days_left_are_counted_by_the_calendar(due: datetime, says: str, level: str) -> None:
    case = PrivacyCase(type="access", state="received", due_at=due)
    left = days_left(case, now=datetime(2027, 3, 10, 12, tzinfo=UTC))
    assert left is not None
    assert (left.text, left.level) == (says, level)


def test_days_left_are_shown_on_each_page(admin: Client) -> None:
    case = case_of(factories.end_user(), days=6.5)
    for page in (board_address(), page_of(case), list_of(PrivacyCase)):
        assert "hub-left-soon" in text_of(admin.get(page))


def test_it_is_filtered_by_type_and_tenant(admin: Client) -> None:
    ours, theirs = factories.end_user(), factories.end_user()
    kept = case_of(ours, type="access")
    others = [case_of(ours), case_of(theirs, type="access")]
    page = text_of(admin.get(board_address(f"?type=access&tenant={ours.tenant_id}")))
    assert page_of(kept) in page
    assert not any(page_of(other) in page for other in others)
    # What is no filter of ours is passed over.
    assert page_of(kept) in text_of(admin.get(board_address("?type=x&tenant=%00")))


def test_the_board_shows_the_cases_of_an_operators_tenants() -> None:
    mine, other = case_of(factories.end_user()), case_of(factories.end_user())
    page = text_of(signed_in(limited(mine.tenant)).get(board_address()))
    assert page_of(mine) in page
    assert page_of(other) not in page


def test_without_any_case_it_says_what_it_is_for(admin: Client) -> None:
    page = text_of(admin.get(board_address()))
    assert "No requests yet" in page
    assert reverse("admin:memories_privacycase_add") in page


def test_names_of_people_are_harmless_and_hidden_from_who_may_not_see_them(
    admin: Client, staff_who_may: Callable[..., Client]
) -> None:
    person = factories.end_user(external_id="secret-id", display_name=HOSTILE)
    case_of(person)
    assert shows_harmless(admin.get(board_address()))
    reader = staff_who_may("view_privacycase")
    for address in (board_address(), list_of(PrivacyCase)):
        page = text_of(reader.get(address))
        assert "secret-id" not in page
        assert "alert" not in page


def test_the_file_of_the_list_tells_nothing_personal(admin: Client) -> None:
    person = factories.end_user(external_id="secret-id", display_name="Anna")
    case = case_of(person, channel="to Anna", reference="secret-ref")
    answer = admin.post(f"{list_of(PrivacyCase)}export/", {"query": ""})
    told = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert str(case.pk) in told
    assert not any(word in told for word in ("secret", "Anna"))


def test_the_tabs_of_the_list(admin: Client) -> None:
    person = factories.end_user()
    late, soon = case_of(person, days=-2), case_of(person, days=5)
    held, done = case_of(person, "on_hold"), case_of(person, "completed")
    tabs = {"open": {late, soon, held}, "overdue": {late}, "week": {soon}, "stopped": {held}, "closed": {done}}
    for tab, cases in tabs.items():
        assert set(admin.get(f"{list_of(PrivacyCase)}?tab={tab}").context["cl"].result_list) == cases, tab


@pytest.mark.parametrize(("days", "colour"), [(9, "primary"), (-1, "danger")])
def test_the_menu_counts_what_is_open_and_warns_of_what_is_overdue(
    administrator: Operator, days: float, colour: str
) -> None:
    case_of(factories.end_user(), days=days)
    case_of(factories.end_user(), "completed")
    request = RequestFactory().get("/admin/")
    request.user = administrator
    items = [item for group in sidebar.navigation(request) for item in group["items"]]
    (entry,) = [item for item in items if item["link"] == board_address()]
    assert (entry["badge"], entry["badge_variant"]) == ("1", colour)


def test_the_dashboard_counts_them_by_days_left(admin: Client, staff_who_may: Callable[..., Client]) -> None:
    person = factories.end_user()
    for days in (-1, 1, 5, 20, 21):
        case_of(person, days=days)
    case_of(person, "completed", days=1)
    answer = admin.get(reverse("admin:index"))
    counts = {name: answer.context["cases"][name] for name in ("open", "overdue", "urgent", "soon", "later")}
    assert counts == {"open": 5, "overdue": 1, "urgent": 1, "soon": 1, "later": 2}
    assert "Privacy cases by days left" in text_of(answer)
    assert "Privacy cases" not in text_of(staff_who_may("view_fact").get(reverse("admin:index")))


def test_the_list_finds_a_case_by_its_reference_or_number(admin: Client) -> None:
    first, second = (case_of(factories.end_user(), reference=reference) for reference in ("TICKET-17", "TICKET-18"))
    for words, found in (("ticket-17", [first]), (str(second.pk)[-12:], [second]), ("nonsense", [])):
        answer = admin.get(list_of(PrivacyCase), {"q": words})
        assert answer.status_code == 200
        assert list(answer.context["cl"].result_list) == found, words
