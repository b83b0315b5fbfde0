"""A profile by a tenant's own schema: defined and then corrected in the form made of it, on a phone in the dark."""

import json

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from memories.models import Operator, ProfileSchema
from tests import factories
from tests.admin.pages import page_of
from tests.browser.axe import faults
from tests.browser.conftest import PHONE, Open
from tests.browser.test_pages import fits
from tests.profiles.defining import TRAVEL, document

pytestmark = pytest.mark.browser


def test_a_profile_is_defined_and_corrected(open_page: Open, operator: Operator) -> None:
    person = factories.end_user(display_name="华桂珍")
    said = factories.session(person, [("user", "我从荷兰埃因霍温出发。" * 9)]).turns.get(number=1)
    page = open_page(size=PHONE, scheme="dark", who=operator)
    page.goto(reverse("admin:memories_tenant_profiles", args=[person.tenant.pk]))
    page.get_by_label("Name").fill("travel")
    page.get_by_label("JSON Schema").fill(json.dumps(TRAVEL, indent=2))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("“travel” is saved")).to_be_visible()
    page.locator("summary", has_text="travel").click()
    assert fits(page)
    assert faults(page) == []
    assert ProfileSchema.objects.get().version == 1

    words = "我从埃因霍温出发" * 20
    fact = factories.fact(person, words, key="profile.travel.home_airport", value="x" * 40, category="other")
    factories.evidence(fact, said, said.content)
    page.goto(page_of(person, "profile_all"))
    page.get_by_role("link", name="Travel").click()
    expect(page.get_by_text("turn 1")).to_be_visible()
    page.get_by_label("seat").select_option("aisle")
    page.get_by_label("passport_until").fill("2031-05-20")
    page.get_by_label("children").fill("3")
    assert fits(page)
    assert faults(page) == []
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("“Travel”").or_(page.get_by_text("“travel” is saved"))).to_be_visible()
    assert fits(page)
    assert faults(page) == []
    assert {**document(person), "home_airport": ""} == {
        "home_airport": "",
        "seat": "aisle",
        "children": 3,
        "passport_until": "2031-05-20",
    }
