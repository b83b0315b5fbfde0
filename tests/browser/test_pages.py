"""Every page in a real browser: wide and on a phone, light and dark, and with hostile text in it."""

import pytest
from django.db.models import Model
from django.urls import reverse
from playwright.sync_api import Page, expect

from memories.models import (
    APIKey,
    AuditEvent,
    DecayPass,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    Operator,
    ReviewItem,
    Session,
    Tenant,
    Turn,
)
from tests import factories
from tests.admin.pages import list_of, page_of
from tests.browser.conftest import DESK, PHONE, Open

pytestmark = pytest.mark.browser

TRAP = '"><img src=x onerror="alert(1)"><script>alert(2)</script><i x-data x-init="alert(3)">{{ alert(4) }}'
LISTS: list[type[Model]] = [
    ReviewItem, EndUser, Fact, Episode, Session, ExtractionRun, DecayPass, APIKey, Tenant, AuditEvent, Operator,
]  # fmt: skip

# The contrast of an element's text to what is behind it (WCAG 2.2), colours resolved by the browser itself.
CONTRAST = """
element => {
  const sheet = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
  const canvas = sheet.getContext("2d", {willReadFrequently: true});
  const layers = [];
  for (let at = element; at; at = at.parentElement) layers.unshift(getComputedStyle(at).backgroundColor);
  const paint = colours => {
    canvas.fillStyle = "#fff"; canvas.fillRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    const light = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(part => part / 255)
      .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
  };
  const [one, other] = [paint(layers), paint([...layers, getComputedStyle(element).color])].sort((a, b) => b - a);
  return (one + 0.05) / (other + 0.05);
}
"""
TEXTS = (
    ".hub-content", ".hub-turn p", "mark", ".hub-role-user", ".hub-turn-meta", ".hub-details dt", ".hub-details dd",
    ".hub-details a", ".hub-diff ins", ".hub-diff del", ".hub-muted", ".hub-button", ".hub-danger > summary",
    ".hub-banner", ".hub-neighbour > summary", ".hub-revision-head span",
)  # fmt: skip


@pytest.fixture
def world(operator: Operator) -> list[str]:
    """One of each, bilingual, with hostile text wherever people can put some; the addresses of all pages."""
    tenant = factories.tenant(slug="acme-prod", name=TRAP, extraction_guidance=TRAP)
    person = factories.end_user(tenant, external_id=TRAP, display_name=f"华桂珍 {TRAP}", metadata={"note": TRAP})
    turns = [("user", "你好"), ("user", f"我对花生过敏 {TRAP}"), ("assistant", TRAP)]
    session = factories.session(person, turns, session_id=TRAP, agent_id=TRAP)
    Turn.objects.update(name=TRAP, metadata={"a": TRAP}, tool_calls=[{"name": TRAP}])
    run = factories.run(session, status="parked", failure="model_timeout", refusals={"low_confidence": 2})
    fact = factories.fact(person, f"对花生过敏 {TRAP}", extraction=run, structured={"a": TRAP}, value=TRAP, tags=[TRAP])
    factories.evidence(fact, session.turns.get(number=2), "我对花生过敏")
    factories.profile_section(person, summary=f"在物流公司工作 {TRAP}", extraction=run)
    factories.profile_revision(person, f"在物流公司工作 {TRAP}", before=TRAP, extraction=run, reason=TRAP)
    key, _ = factories.api_key(tenant, name=TRAP)
    item = factories.review_item(fact, note=TRAP)
    held = factories.decay_pass(tenant, state="held", counts={"held": 9, "memories": 10})
    words = {"key_topics": [TRAP, "花生"], "actions_taken": [TRAP], "outcomes": [TRAP]}
    episode = factories.episode(session, f"说到花生过敏 {TRAP}", last_number=3, **words)
    poor = factories.poor_episode(factories.session(person, turns, agent_id=TRAP), TRAP, last_number=3, **words)
    records: list[Model] = [item, poor, person, fact, episode, session, run, held, key, tenant, operator]
    section = reverse("admin:memories_enduser_profile", args=[person.pk, "work_context"])
    fading = [reverse("admin:forgetting"), reverse("admin:next_decay_pass", args=[tenant.pk])]
    lists, pages = map(list_of, LISTS), map(page_of, records)
    return [reverse("admin:index"), *lists, *pages, f"{list_of(APIKey)}add/", section, *fading]


def fits(page: Page) -> bool:
    """Nothing makes the page itself scroll sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


@pytest.mark.parametrize(("size", "scheme"), [(DESK, "light"), (PHONE, "dark")], ids=["wide, light", "phone, dark"])
def test_all_pages_open_and_fit(
    open_page: Open, world: list[str], operator: Operator, size: tuple[int, int], scheme: str
) -> None:
    page = open_page(size=size, scheme=scheme, who=operator)
    for address in world:
        answer = page.goto(address)
        assert answer
        assert answer.status == 200
        expect(page.locator("h1").first).to_be_visible()
        assert fits(page), address
        dark = page.evaluate("document.documentElement.classList.contains('dark')")
        assert dark == (scheme == "dark")


def test_hostile_text_is_shown_and_not_run(open_page: Open, world: list[str], operator: Operator) -> None:
    page = open_page(who=operator)
    page.goto(page_of(Fact.objects.get()))
    expect(page.locator("#content-now")).to_contain_text(TRAP)
    expect(page.locator(".hub-cited p")).to_contain_text(TRAP)
    page.goto(page_of(Episode.objects.get(status="active")))
    expect(page.locator("#content-now")).to_contain_text(TRAP)
    expect(page.locator(".hub-lists")).to_contain_text(TRAP)
    page.goto(page_of(EndUser.objects.get()))
    expect(page.locator(".hub-name")).to_contain_text(TRAP)
    assert page.locator("[x-init='alert(3)']").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(open_page: Open, operator: Operator, scheme: str) -> None:
    person = factories.end_user()
    session = factories.session(person, [("user", "Hi"), ("user", "我对花生过敏"), ("assistant", "好的")])
    fact = factories.fact(person, "对花生过敏", source_error="nuts")
    factories.evidence(fact, session.turns.get(number=2), "对花生过敏")
    page = open_page(scheme=scheme, who=operator)
    page.goto(page_of(fact))
    page.locator("summary", has_text="Correct").click()
    page.get_by_label("What is right").fill("对青霉素过敏")
    page.get_by_label("Reason").first.fill("again")
    page.get_by_role("button", name="Correct this fact").click()
    page.locator("summary", has_text="Correct").click()
    page.get_by_label("What is right").fill("对坚果过敏")
    page.get_by_label("Reason").first.fill("again")
    page.get_by_role("button", name="Correct this fact").click()
    expect(page.locator(".hub-diff ins").first).to_be_visible()
    contrasts = {text: page.locator(text).first.evaluate(CONTRAST) for text in TEXTS}
    assert {text: round(ratio, 2) for text, ratio in contrasts.items() if ratio < 4.5} == {}


def test_a_new_key_is_shown_once_and_copied(open_page: Open, operator: Operator) -> None:
    factories.tenant(slug="acme-prod")
    page = open_page(who=operator)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{list_of(APIKey)}add/")
    page.get_by_label("Tenant").select_option(label="acme-prod")
    page.get_by_label("Name").fill("support-bot")
    page.get_by_role("button", name="Make the key").click()
    plaintext = page.locator("#plaintext").input_value()
    assert plaintext.startswith("mh_")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Copied", exact=True)).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == plaintext
    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_text("A key is never edited")).to_be_visible()
    assert plaintext not in page.content()


def test_a_request_to_elsewhere_would_be_noticed(open_page: Open, complaints: list[str]) -> None:
    page = open_page()
    page.goto(reverse("admin:login"))
    page.evaluate("new Image().src = 'https://example.test/pixel.png'")
    page.wait_for_timeout(200)
    assert complaints
    complaints.clear()
