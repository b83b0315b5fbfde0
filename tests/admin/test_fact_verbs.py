"""Correct, forget and restore: what they change, what they leave behind, and when they are refused."""

from typing import Any

import pytest
from django.test import Client

from memories.models import AuditEvent, EndUser, Fact, FactRevision, Operator
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.curation.marks import places_of


@pytest.fixture
def fact(db: None) -> Fact:
    return factories.fact(factories.end_user(), "Allergic to peanuts", category="preference", key="allergy")


def correct(client: Client, fact: Fact, **over: Any) -> Any:
    return client.post(page_of(fact, "correct"), correction(fact, **over))


def correction(fact: Fact, **over: Any) -> dict[str, Any]:
    form = {"version": fact.version, "content": "对青霉素过敏", "category": "constraint", "reason": "医生来信"}
    return {**form, **over}


def forget(client: Client, fact: Fact, **over: Any) -> Any:
    return client.post(page_of(fact, "forget"), {"version": fact.version, "reason": "She asked for it", **over})


def restore(client: Client, fact: Fact, **over: Any) -> Any:
    return client.post(page_of(fact, "restore"), {"version": fact.version, **over})


def test_a_correction_is_the_operators_word(admin: Client, administrator: Operator, fact: Fact) -> None:
    response = correct(admin, fact)
    assert response.status_code == 302
    assert response["Location"] == page_of(fact)
    fact.refresh_from_db()
    assert (fact.content, fact.category, fact.binding, fact.trust) == ("对青霉素过敏", "constraint", True, "operator")
    revision = FactRevision.objects.get(fact=fact)
    assert (revision.verb, revision.reason, revision.actor_id) == ("correct", "医生来信", str(administrator.pk))
    event = AuditEvent.objects.get(object_id=fact.pk)
    assert (event.verb, event.actor_kind, event.actor_id) == ("correct", "operator", str(administrator.pk))
    assert event.request_id == response["X-Request-ID"]


def test_it_is_forgotten_and_restored(admin: Client, fact: Fact) -> None:
    assert forget(admin, fact).status_code == 302
    assert fresh(fact).status == "trashed"
    page = text_of(admin.get(page_of(fact)))
    assert "In the trash" in page
    assert page_of(fact, "correct") not in page
    assert restore(admin, fresh(fact)).status_code == 302
    assert fresh(fact).status == "active"
    assert list(AuditEvent.objects.filter(object_id=fact.pk).order_by("id").values_list("verb", flat=True)) == [
        "forget", "restore",
    ]  # fmt: skip


def test_restore_goes_back_to_an_earlier_version(admin: Client, fact: Fact) -> None:
    correct(admin, fact, content="First correction")
    correct(admin, fresh(fact), content="Second correction")
    assert restore(admin, fresh(fact), earlier=2, reason="The first was right").status_code == 302
    fact.refresh_from_db()
    assert (fact.content, fact.version) == ("First correction", 4)
    page = text_of(admin.get(page_of(fact)))
    assert "Restore version 3" in page
    assert "Restore version 4" not in page


def test_the_second_of_two_operators_is_told_and_loses_nothing(admin: Client, fact: Fact) -> None:
    elsewhere = signed_in(factories.operator())
    assert correct(elsewhere, fact, content="Allergic to nuts").status_code == 302
    response = correct(admin, fact, content="对青霉素过敏", reason="我的理由")
    assert response.status_code == 412
    page = text_of(response)
    assert "Somebody else changed this in the meantime." in page
    assert "Allergic to nuts" in page
    assert "对青霉素过敏" in page
    assert "我的理由" in page
    assert fresh(fact).content == "Allergic to nuts"
    assert AuditEvent.objects.count() == 1
    # Having looked, the operator sends the same form again: it names the version that was shown.
    shown = response.context["tried"]
    assert correct(admin, fact, version=shown["version"].value(), content=shown["content"].value()).status_code == 302
    assert fresh(fact).content == "对青霉素过敏"


def test_a_bad_correction_changes_nothing(admin: Client, fact: Fact) -> None:
    for fault in (
        {"content": ""}, {"content": "   "}, {"content": "x" * 2001}, {"content": "a\x00b"}, {"category": "mood"},
        {"reason": "x" * 2001}, {"version": ""}, {"version": "one"},
    ):  # fmt: skip
        assert correct(admin, fact, **fault).status_code == 400, fault
    assert fresh(fact).content == "Allergic to peanuts"
    assert not AuditEvent.objects.exists()


def test_the_verbs_need_the_token_of_the_form(administrator: Operator, fact: Fact) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(administrator)
    assert correct(strict, fact).status_code == 403
    assert fresh(fact).content == "Allergic to peanuts"
    page = strict.get(page_of(fact))
    token = str(page.context["csrf_token"])
    assert correct(strict, fact, csrfmiddlewaretoken=token).status_code == 302


def test_a_verb_is_never_a_link(admin: Client, fact: Fact) -> None:
    response = admin.get(page_of(fact, "forget"))
    assert response.status_code == 302
    assert response["Location"] == page_of(fact)
    assert fresh(fact).status == "active"


def test_a_verb_on_an_unknown_fact_is_not_found(admin: Client, fact: Fact, db: None) -> None:
    gone = page_of(fact, "forget")
    EndUser.objects.all().delete()
    assert admin.post(gone, {"version": 1, "reason": "late"}).status_code == 404


def test_a_wild_version_is_never_a_server_error(admin: Client, fact: Fact) -> None:
    for number in ("-1", "0", "99999999999999999999", "1e9"):
        assert restore(admin, fact, earlier=number).status_code in (400, 404, 409), number
        assert correct(admin, fact, version=number).status_code in (400, 412), number
    assert fresh(fact).version == 1


def fresh(fact: Fact) -> Fact:
    return Fact.objects.get(pk=fact.pk)


@pytest.mark.parametrize("said", ["The password is Tr0ub4dor-9x", "Allergic to penicillin"])
def test_a_secret_in_a_correction_is_cut_out_and_the_operator_told(admin: Client, fact: Fact, said: str) -> None:
    page = text_of(admin.post(page_of(fact, "correct"), correction(fact, content=said, reason=said), follow=True))
    assert ("A secret was removed from your input." in page) == ("password" in said)
    assert places_of("Tr0ub4dor-9x") == []
    assert Fact.objects.get().content == said.replace("Tr0ub4dor-9x", "[redacted:password]")
