"""The page of a privacy case: its steps, the forms that fit, two people, and what was typed."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories import audit
from memories.admin.cases.detail import steps_of
from memories.models import AuditEvent, PrivacyCase
from memories.privacy.exports.profiles import SECTIONS
from tests import factories
from tests.admin import walk
from tests.admin.cases import case_of, with_receipt
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of

pytestmark = pytest.mark.django_db
WHY = "Because of a lawsuit"


@pytest.fixture
def officer(db: None) -> Client:
    return signed_in(walk.role("dpo"))


def test_an_erasure_by_two_people(officer: Client) -> None:
    """From the request to the approval, each step where the page offers it."""
    person = factories.end_user(external_id="user-1")
    factories.fact(person)
    came = officer.post(
        reverse("admin:memories_privacycase_add"),
        {
            "tenant": person.tenant_id, "user_id": "user-1", "type": "erasure", "asked_by": "subject",
            "received_on": timezone.localdate(), "channel": "email", "reference": "T-1",
        },
    )  # fmt: skip
    case = PrivacyCase.objects.get()
    assert came.headers["Location"] == f"{page_of(case)}#next"
    for verb, given in (("verify", {"how": "call_back"}), ("scope", {"policy": "refuse"})):
        answer = officer.post(page_of(case, verb), {**given, "version": case.version})
        assert answer.headers["Location"] == f"{page_of(case)}#next"
        case.refresh_from_db()
    assert (case.state, case.policy, case.verified_how) == ("scoped", "refuse", "call_back")
    person.refresh_from_db()
    assert person.restricted_at
    page = text_of(officer.get(page_of(case)))
    assert "You opened this case" in page
    assert page_of(case, "approve") not in page
    approval = {"typed_id": "user-1", "version": case.version}
    # The one who opened it is told so, also when they find a way to send the form.
    assert officer.post(page_of(case, "approve"), approval).status_code == 409
    second = signed_in(walk.role("dpo"))
    assert page_of(case, "approve") in text_of(second.get(page_of(case)))
    assert second.post(page_of(case, "approve"), {**approval, "typed_id": "user-2"}).status_code == 400
    assert second.post(page_of(case, "approve"), approval).status_code == 302
    case.refresh_from_db()
    assert case.approved_at


def test_who_may_not_approve_sees_the_step_without_its_button(staff_who_may: Callable[..., Client]) -> None:
    case = case_of(factories.end_user(external_id="user-1"), "scoped")
    handler = staff_who_may("view_privacycase", "change_privacycase", "view_enduser")
    page = text_of(handler.get(page_of(case)))
    assert "You do not have permission to approve erasures" in page
    assert page_of(case, "approve") not in page
    assert handler.post(page_of(case, "approve"), {"typed_id": "user-1", "version": 1}).status_code == 403


def test_who_may_only_see_gets_no_form(staff_who_may: Callable[..., Client]) -> None:
    case = case_of(factories.end_user(external_id="secret-id"))
    reader = staff_who_may("view_privacycase")
    page = text_of(reader.get(page_of(case)))
    assert page_of(case, "verify") not in page
    assert "secret-id" not in page
    assert reader.post(page_of(case, "verify"), {"how": "signed_in", "version": 1}).status_code == 403


def test_a_step_on_what_somebody_changed_meanwhile_shows_what_was_typed(officer: Client) -> None:
    for state, verb, given in (
        ("received", "verify", {"how": "document"}),
        ("verified", "scope", {"policy": "flag"}),
        ("scoped", "approve", {"typed_id": "user-1"}),
        ("verified", "hold", {"reason": WHY, "review_on": "2099-01-01"}),
        ("received", "refuse", {"ground": "identity", "reason": WHY}),
        ("received", "extend", {"months": "1", "reason": WHY, "notice_on": "2099-01-01"}),
        ("verified", "tell", {"told": WHY}),
    ):
        case = case_of(factories.end_user(external_id="user-1"), state)
        PrivacyCase.objects.update(version=7)
        answer = officer.post(page_of(case, verb), {**given, "version": 1})
        page = text_of(answer)
        assert answer.status_code == 412, verb
        assert "Somebody else changed this in the meantime" in page, verb
        assert 'name="version" value="7"' in page, verb
        assert all(value in page for value in given.values() if value in (WHY, "user-1")), verb


def test_what_is_wrong_is_said_beside_its_field(officer: Client) -> None:
    case = case_of(factories.end_user())
    for verb, given, field in (
        ("hold", {"reason": WHY, "review_on": "2000-01-01"}, "review_on"),
        ("extend", {"months": "2", "reason": WHY, "notice_on": "2000-01-01"}, "notice_on"),
        ("refuse", {"ground": "", "reason": WHY}, "ground"),
    ):
        answer = officer.post(page_of(case, verb), {**given, "version": case.version})
        assert (answer.status_code, list(answer.context["tried"].errors)) == (400, [field])
        assert WHY in text_of(answer)


def test_held_released_extended_and_refused(officer: Client) -> None:
    case = case_of(factories.end_user(), "verified", days=20)
    day = timezone.localdate()
    for verb, given, state in (
        ("hold", {"reason": WHY, "review_on": day + timedelta(days=9)}, "on_hold"),
        ("release", {}, "verified"),
        ("extend", {"months": 2, "reason": WHY, "notice_on": case.received_at.date()}, "verified"),
        ("tell", {"told": "Mail provider"}, "verified"),
        ("refuse", {"ground": "obligation", "reason": WHY}, "refused"),
    ):
        answer = officer.post(page_of(case, verb), {**given, "version": case.version})
        assert answer.status_code == 302, (verb, text_of(answer))
        case.refresh_from_db()
        assert case.state == state
        assert officer.get(page_of(case)).status_code == 200
    page = text_of(officer.get(page_of(case)))
    assert "A legal obligation to keep the data" in page
    assert page_of(case, "hold") not in page


@pytest.mark.parametrize("kind", ["rectification", "restriction"])
def test_a_case_without_a_run_is_completed_with_its_outcome(officer: Client, kind: str) -> None:
    case = case_of(factories.end_user(), "verified", type=kind)
    assert page_of(case, "complete") in text_of(officer.get(page_of(case)))
    answer = officer.post(page_of(case, "complete"), {"outcome": "Put right", "told": "", "version": case.version})
    assert answer.status_code == 302
    case.refresh_from_db()
    assert (case.state, case.outcome) == ("completed", "Put right")


def test_at_most_one_step_is_next() -> None:
    person = factories.end_user()
    for kind, state, over, following in (
        ("erasure", "received", {}, "identity"),
        ("erasure", "verified", {}, "scope"),
        ("erasure", "scoped", {}, "approval"),
        ("erasure", "approved", {}, "run"),
        ("erasure", "running", {}, "run"),
        ("erasure", "verifying", {}, "check"),
        ("erasure", "failed", {}, "run"),
        ("erasure", "failed", {"findings": {"hits": {"files:exports": 1}}}, "check"),
        ("erasure", "on_hold", {}, "scope"),
        ("erasure", "refused", {}, ""),
        ("erasure", "completed", {}, ""),
        ("access", "verified", {}, "scope"),
        ("access", "running", {"scoped_at": None}, "export"),
        ("restriction", "verified", {}, "outcome"),
    ):
        case = case_of(person, state, type=kind, **over)
        assert [step.name for step in steps_of(case, []) if step.state == "now"] == ([following] if following else [])


def test_a_file_that_is_ready_is_to_be_handed_over() -> None:
    case = case_of(factories.end_user(), "completed", type="access")
    ready = factories.privacy_export(case, expires_at=timezone.now())
    taken = factories.privacy_export(case, state="taken", content=b"")
    assert [step.state for step in steps_of(case, [ready, taken])][-1] == "now"
    assert [step.state for step in steps_of(case, [taken])][-1] == "done"


def test_while_it_runs_the_progress_is_asked_for_alone(officer: Client) -> None:
    case = case_of(factories.end_user(), "running", counts={"memories.Turn": 642}, step="turns")
    assert 'data-again="' in text_of(officer.get(page_of(case)))
    alone = text_of(officer.get(page_of(case), headers={"X-Fragment": "progress"}))
    assert alone.strip().startswith('<div class="case-progress" data-state="running"')
    assert "642 of 1,496 rows" in alone
    assert "<html" not in alone


def test_what_failed_tells_the_places_and_is_run_again(officer: Client) -> None:
    findings = {"tables": 4, "rows": 9, "bytes": 1, "hits": {"django_q.OrmQ.payload": 2}, "mentions": {}}
    case = case_of(factories.end_user(), "failed", failure="found", findings=findings)
    page = text_of(officer.get(page_of(case)))
    assert "django_q.OrmQ.payload" in page
    assert "Queued work" in page
    assert officer.post(page_of(case, "run"), {"version": case.version}).status_code == 302
    case.refresh_from_db()
    assert case.state == "approved"


@pytest.mark.parametrize(("spoken", "first"), [("zh-TW", "zh-hans"), ("fr", "en"), ("", "en")])
def test_a_file_is_made_in_a_language_that_is_chosen(officer: Client, spoken: str, first: str) -> None:
    """At first the person's, as far as the hub speaks it."""
    case = case_of(factories.end_user(language=spoken), "scoped", type="access")
    page = text_of(officer.get(page_of(case)))
    assert f'<option value="{first}" selected>' in page
    refused = officer.post(page_of(case, "run"), {"version": case.version, "language": "tlh"})
    assert refused.status_code == 400
    assert officer.post(page_of(case, "run"), {"version": case.version, "language": "zh-hans"}).status_code == 302
    case.refresh_from_db()
    assert (case.state, case.language) == ("running", "zh-hans")


def test_an_erasure_asks_for_no_language(officer: Client) -> None:
    assert 'name="language"' not in text_of(officer.get(page_of(case_of(factories.end_user(), "failed"))))


def test_other_people_who_are_named_are_flagged(officer: Client) -> None:
    case = case_of(
        factories.end_user(), "scoped", preview={"memories.Turn": 3, "mentions": {"memories.Fact.content": 2}}
    )
    assert "Memories of other people mention this person" in text_of(officer.get(page_of(case)))
    PrivacyCase.objects.update(preview={"memories.Turn": 3})
    assert "Memories of other people mention this person" not in text_of(officer.get(page_of(case)))


def test_the_trail_is_that_of_the_case(officer: Client) -> None:
    case, other = case_of(factories.end_user()), case_of(factories.end_user())
    officer.post(page_of(case, "verify"), {"how": "signed_in", "version": 1})
    acts = officer.get(page_of(case)).context["trail"]
    assert [event for event, _sentence, _counts in acts] == list(AuditEvent.objects.filter(case_uuid=case.pk))
    assert len(acts) == 1
    assert acts[0][1].endswith(" verified a privacy case")
    assert officer.get(page_of(other)).context["trail"] == []


def test_a_date_is_no_time_ago(officer: Client) -> None:
    """Of the day of receipt nobody knows the hour."""
    page = text_of(officer.get(page_of(case_of(factories.end_user()))))
    for label in ("Received on", "Due on"):
        shown = re.sub("<[^>]+>", "", page.split(f"<dt>{label}</dt>")[1].split("</dd>")[0])
        assert re.fullmatch(r"\d{1,2} [A-Z][a-z]{2} \d{4}", shown.strip()), shown


def test_the_trail_says_in_words_what_a_file_holds(officer: Client) -> None:
    case = case_of(factories.end_user())
    counts = {section.name: number for number, section in enumerate(SECTIONS)}
    whose = {"target": case, "object_id": case.pk, "tenant": case.tenant, "case": case.pk}
    audit.record(actor=factories.COMMAND, verb="export", now=factories.NOW, counts=counts, **whose)  # type: ignore[arg-type]
    shown: Any = officer.get(page_of(case)).context["trail"][0][2]
    assert len(shown) == len(SECTIONS) - 1
    assert not [name for name, _count in shown if "_" in name or "." in name]
    assert dict(shown)["Fact vectors"] == counts["fact_vectors"]


def test_the_receipt_is_read_and_taken_along(officer: Client) -> None:
    case = with_receipt(factories.end_user(external_id="secret-id"))
    read = text_of(officer.get(page_of(case, "receipt")))
    assert str(case.pk) in read
    assert "What is not covered, and until when" in read
    for kind in ("receipt_json", "receipt_html"):
        answer = officer.get(page_of(case, kind))
        assert answer.headers["Content-Disposition"].startswith("attachment")
        assert case.signature in text_of(answer)
        assert "secret-id" not in text_of(answer)
    without = case_of(factories.end_user())
    assert officer.get(page_of(without, "receipt")).status_code == 404


def test_once_the_person_is_gone_the_page_says_so(officer: Client) -> None:
    case = with_receipt(factories.end_user(external_id="secret-id"))
    PrivacyCase.objects.update(end_user=None)
    page = text_of(officer.get(page_of(case)))
    assert "erased" in page
    assert "secret-id" not in page


def test_the_count_is_of_all_stores_and_of_others_who_name_the_person(officer: Client) -> None:
    person = factories.end_user(external_id="user-8812")
    factories.session(person, [("user", "Hello")])
    other = factories.end_user(person.tenant)
    factories.session(other, [("user", "I am a friend of user-8812")])
    case = case_of(person, "verified")
    officer.post(page_of(case, "scope"), {"policy": "flag", "version": case.version})
    page = officer.get(page_of(case))
    rows = {row.name: (row.count, row.mentions) for row in page.context["rows"]}
    assert rows["Turns"] == (1, 1)
    assert "Memories of other people mention this person" in text_of(page)
