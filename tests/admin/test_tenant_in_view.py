"""The tenant in view narrows lists, tiles, the queue and what is found to one tenant, says so, and permits nothing."""

import pytest
from django.test import Client
from django.urls import reverse

from memories.models import EndUser, Fact, Operator, Tenant
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, text_of
from tests.admin.test_tenant_scope import limited, records

pytestmark = pytest.mark.django_db
CHOOSE = reverse("admin:tenant_in_view")
BANNER = "hub-in-view"


@pytest.fixture
def two() -> tuple[Fact, Fact]:
    """A fact that waits for review in each of two tenants."""
    made = [factories.fact(factories.end_user(), f"Likes tea {number}", status="pending") for number in range(2)]
    for fact in made:
        factories.review_item(fact)
    return made[0], made[1]


def choose(client: Client, tenant: Tenant | None) -> int:
    return client.post(CHOOSE, {"tenant": tenant.pk if tenant else ""}).status_code


def test_lists_the_queue_and_the_tiles_show_it_alone(admin: Client, two: tuple[Fact, Fact]) -> None:
    mine, other = two
    before = text_of(admin.get(list_of(Fact)))
    assert mine.content in before
    assert other.content in before
    assert BANNER not in before
    assert choose(admin, mine.tenant) == 302
    for page in (list_of(Fact), reverse("admin:memories_reviewitem_queue")):
        shown = text_of(admin.get(page))
        assert mine.content in shown
        assert other.content not in shown
        assert BANNER in shown
    assert admin.get(reverse("admin:memories_reviewitem_queue")).context["waiting"] == 1
    people = admin.get(list_of(EndUser)).context["cl"].result_count
    assert people == 1
    found = admin.post(reverse("admin:search"), {"words": other.end_user.external_id}, headers={"X-Palette": "1"})
    # Articles of the help are of no tenant.
    assert [hit for hit in found.context["hits"] if hit.kind != "Help"] == []


def test_every_list_and_the_tiles_show_it_alone(admin: Client) -> None:
    made = records(), records()
    for rows in made:
        person = next(row for row in rows if isinstance(row, EndUser))
        rows += [factories.logged_context(person), factories.agent(person.tenant)]
        factories.fact(person, "Known")
    own, others = made
    tenant = next(row for row in own if isinstance(row, Tenant))

    def listed() -> set[tuple[str, str]]:
        pages = [(row, admin.get(f"{list_of(type(row))}?all=")) for row in own if not isinstance(row, Tenant)]
        return {(str(found.pk), type(row).__name__) for row, page in pages for found in page.context["cl"].queryset}

    def tiles() -> tuple[int, int, int]:
        seen = admin.get(reverse("admin:index")).context
        return seen["people"], seen["facts"]["active"], seen["review"].waiting

    def named(rows: list[object]) -> set[tuple[str, str]]:
        return {(str(row.pk), type(row).__name__) for row in rows if not isinstance(row, Tenant)}  # type: ignore[attr-defined]

    assert named(own) | named(others) <= listed()
    assert tiles() == (2, 2, 2)
    choose(admin, tenant)
    shown = listed()
    assert named(own) <= shown
    assert not named(others) & shown
    assert tiles() == (1, 1, 1)


def test_all_are_shown_again(admin: Client, two: tuple[Fact, Fact]) -> None:
    choose(admin, two[0].tenant)
    choose(admin, None)
    shown = text_of(admin.get(list_of(Fact)))
    assert two[1].content in shown
    assert BANNER not in shown


def test_it_is_of_this_session_alone(admin: Client, administrator: Operator, two: tuple[Fact, Fact]) -> None:
    choose(admin, two[0].tenant)
    assert two[1].content in text_of(signed_in(administrator).get(list_of(Fact)))


def test_a_record_of_another_tenant_opens_by_its_address_and_can_be_changed(
    admin: Client, two: tuple[Fact, Fact]
) -> None:
    choose(admin, two[0].tenant)
    other = two[1]
    assert other.content in text_of(admin.get(page_of(other)))
    done = admin.post(page_of(other, "approve"), {"version": other.version, "reason": ""}, follow=True)
    assert Fact.objects.get(pk=other.pk).status == "active"
    assert "/undo/" in text_of(done)


def test_it_permits_nothing(two: tuple[Fact, Fact]) -> None:
    mine, other = two
    operator = limited(mine.tenant)
    client = signed_in(operator)
    assert choose(client, other.tenant) == 400
    assert str(other.tenant) not in text_of(client.get(CHOOSE))
    session = client.session
    session["tenant_in_view"] = str(other.tenant.pk)
    session.save()
    shown = text_of(client.get(list_of(Fact)))
    assert other.content not in shown
    assert mine.content in shown
    assert "tenant_in_view" not in client.session
    # Taken away while it is in view.
    choose(client, mine.tenant)
    operator.tenants.clear()
    assert mine.content not in text_of(client.get(list_of(Fact)))


def test_what_is_no_tenant_is_refused(admin: Client) -> None:
    for chosen in ("nonsense", "\x00", "01a20a82-7e23-74b8-ad82-9f69faefaef9"):
        assert admin.post(CHOOSE, {"tenant": chosen}).status_code == 400, chosen


def test_with_one_tenant_the_menu_does_not_offer_it(admin: Client) -> None:
    factories.tenant()
    assert CHOOSE not in text_of(admin.get(list_of(Fact)))
    factories.tenant()
    assert CHOOSE in text_of(admin.get(list_of(Fact)))
