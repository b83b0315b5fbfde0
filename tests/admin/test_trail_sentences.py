"""The audit trail in sentences: who did what to whose memory, for who may see that; the stored fields stay at hand."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import translation

from memories import audit
from memories.admin.trail.sentences import OBJECTS, sentence_of
from memories.audit import Actor
from memories.curation.facts.editing import correct_fact
from memories.models import ActorKind, AuditEvent, Fact, PrivacyExport
from memories.verbs import VERBS
from tests import factories
from tests.admin.pages import list_of, page_of, text_of
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def fact() -> Fact:
    made = factories.fact(factories.end_user(external_id="u-1", display_name="Li Wei"))
    actor = Actor.operator(factories.operator(username="anna"))
    return correct_fact(fact_id=made.pk, tenant=None, content="Lives in Utrecht", reason="x", actor=actor, now=NOW)


def test_an_event_is_told_with_its_fields_behind(admin: Client, fact: Fact) -> None:
    page = text_of(admin.get(list_of(AuditEvent)))
    assert "anna corrected a fact of Li Wei" in page
    assert f"Fact {fact.pk}" in page
    assert "<summary>Details</summary>" in page


def test_in_chinese_too(fact: Fact) -> None:
    with translation.override("zh-hans"):
        told = sentence_of(who="anna", verb="correct", object_type="Fact", person="李薇")
        assert told == "anna 更正了李薇的一条事实"
        # Names come in any script: Chinese has a space before a Latin word, and none before a Chinese one.
        assert sentence_of(who="应用", verb="write", object_type="MemoryFile", person="pat") == (
            "应用写入了 pat 的一个记忆文件"
        )
        assert sentence_of(who="安娜 B", verb="pin", object_type="Fact", person="李 薇").startswith("安娜 B ")
        sentences = [text for verb in VERBS.values() for text in (verb.sentence, *verb.special.values()) if text]
        untranslated = [str(text) for text in sentences if str(text).isascii()]
        untranslated += [str(plain) for plain, _ in OBJECTS.values() if str(plain).isascii()]
    assert untranslated == []


def test_whose_it_was_is_shown_to_who_may_see_people_alone(staff_who_may: Callable[..., Client], fact: Fact) -> None:
    page = text_of(staff_who_may("view_auditevent", "view_fact").get(list_of(AuditEvent)))
    assert "anna corrected a fact" in page
    assert "Li Wei" not in page
    nobody = text_of(staff_who_may("view_auditevent", "view_enduser").get(list_of(AuditEvent)))
    assert "Li Wei" not in nobody


def test_what_is_gone_or_unknown_is_told_without(admin: Client, fact: Fact) -> None:
    Fact.objects.filter(pk=fact.pk).delete()
    assert "anna corrected a fact<" in text_of(admin.get(list_of(AuditEvent)))
    assert sentence_of(who="anna", verb="seal_up", object_type="Nonsense") == "anna: Seal up – Nonsense"


def test_who_carries_out_a_case_is_no_extraction(admin: Client) -> None:
    case = factories.privacy_case(factories.end_user())
    given: dict[str, Any] = {"target": case, "object_id": case.pk, "tenant": case.tenant, "now": NOW}
    audit.record(actor=Actor(kind=ActorKind.RUN), verb="complete", **given)
    page = text_of(admin.get(list_of(AuditEvent)))
    assert "The worker completed a privacy case" in page
    assert "Extraction completed" not in page


def test_a_link_is_no_person(admin: Client) -> None:
    case = factories.privacy_case(factories.end_user())
    given: dict[str, Any] = {"target": PrivacyExport, "object_id": case.pk, "tenant": case.tenant, "now": NOW}
    audit.record(actor=Actor(kind=ActorKind.LINK), verb="download", **given)
    assert "Somebody with the one-time link downloaded an export" in text_of(admin.get(list_of(AuditEvent)))


@pytest.mark.parametrize(
    ("verb", "object_type", "told"),
    [
        ("create", "APIKey", "anna created an API key"),
        ("export", "Fact", "anna exported the list “Facts”"),
        ("export", "AuditEvent", "anna exported the list “Audit trail”"),
        ("export", "PrivacyCase", "anna made the file of a privacy case"),
        ("link", "PrivacyExport", "anna made a one-time link to an export"),
        ("download", "PrivacyExport", "anna downloaded an export"),
        ("extract", "ProfileSection", "anna wrote a profile section"),
        ("erase", "PrivacyCase", "anna erased the end user of a privacy case"),
        ("roll_back", "ChangeSet", "anna rolled back memories"),
        ("hold", "DecayPass", "The safety limit held a decay pass"),
        ("hold", "PrivacyCase", "anna held a privacy case"),
        ("edit", "MemoryFile", "anna edited a memory file"),
    ],
)
def test_each_kind_of_object_reads_as_a_sentence(verb: str, object_type: str, told: str) -> None:
    assert sentence_of(who="anna", verb=verb, object_type=object_type) == told


def test_the_page_of_an_event_has_the_sentence_and_the_zone(admin: Client, fact: Fact) -> None:
    event = AuditEvent.objects.get(verb="correct")
    page = text_of(admin.get(page_of(event)))
    assert "anna corrected a fact of Li Wei" in page
    assert "3 Nov 2026, 09:12:00 UTC" in page
    assert page_of(fact) in page
    # Its counts and its request are left empty, and not shown as Python has them.
    assert "{}" not in page
