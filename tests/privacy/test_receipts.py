"""Receipts: who was not there reads what was erased and what remains; they verify, and name nobody."""

import copy
import json
import stat
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.utils.translation import override

from memories import conf
from memories.models import CaseState, EndUser, PrivacyCase, Tombstone
from memories.privacy import receipt_page, receipts
from memories.privacy.searching import search_terms
from memories.retrieval import cache
from tests import factories, hostile
from tests.factories import NOW

pytestmark = pytest.mark.django_db
FINDINGS = {
    "tables": 31,
    "rows": 4200,
    "bytes": 1_048_576,
    "hits": {},
    "mentions": {"memories.Turn.content": 3},
}
COUNTS = {"memories.Turn": 12, "memories.Fact": 5, "memories.Episode": 0, "files": 1}


def issued(person: EndUser | None = None, **over: Any) -> PrivacyCase:
    """A case at its end, with its receipt."""
    person = person or factories.end_user()
    given = {"findings": FINDINGS, "counts": COUNTS, "started_at": NOW, **over}
    case = factories.privacy_case(person, state=CaseState.VERIFYING, **given)
    Tombstone.objects.create(
        tenant=case.tenant, digest=case.subject, policy=case.policy, case_uuid=case.pk, created_at=NOW
    )
    receipts.issue(case, now=NOW)
    case.save()
    return case


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href", "style", "onclick")]

    def handle_data(self, data: str) -> None:
        self.text += data


def read(case: PrivacyCase) -> _Text:
    page = _Text()
    page.feed(receipts.page(case))
    return page


class TestWhatItSays:
    def test_what_was_erased_and_what_was_searched(self) -> None:
        receipt = issued().receipt
        assert receipt["erased"] == COUNTS
        assert receipt["verified"]["hits"] == 0
        assert (receipt["verified"]["tables"], receipt["verified"]["rows"]) == (31, 4200)
        assert receipt["verified"]["mentions"] == {"memories.Turn.content": 3}
        assert receipt["moments"]["completed"] == "2026-11-03T09:12:00Z"

    def test_it_is_not_completed_before_it_began(self) -> None:
        """Whoever ran it came with a time of their own, the beginning is by the database's clock."""
        moments = issued(started_at=NOW + timedelta(seconds=2)).receipt["moments"]
        assert moments["started"] == moments["completed"] == "2026-11-03T09:12:02Z"

    def test_what_was_not_searched_is_told(self) -> None:
        case = issued(findings={**FINDINGS, "skipped": {"files:backups": "copies that an operator keeps"}})
        assert "copies that an operator keeps" in read(case).text

    def test_who_acted_by_their_role_alone(self) -> None:
        receipt = issued().receipt
        assert receipt["acted"]["approved"] == {"kind": "operator", "id": "2"}
        assert receipt["identity"] == "signed_in"

    @pytest.mark.parametrize(("days", "until"), [(30, "2026-12-03"), (0, "Until your backups are deleted.")])
    def test_backups_until_when(self, settings: Any, days: int, until: str) -> None:
        settings.MEMORYHUB_BACKUP_DAYS = days
        assert self.covered("backups")["until"] == until

    @pytest.mark.parametrize(
        ("window", "until"), [("02:00-04:00", "between 02:00-04:00 UTC"), ("", "no rewrite is set up")]
    )
    def test_the_files_until_when(self, settings: Any, window: str, until: str) -> None:
        settings.MEMORYHUB_REWRITE_WINDOW = window
        assert until in self.covered("tables")["until"]

    def test_no_provider_is_named_without_one(self) -> None:
        whats = {one["what"] for one in issued().receipt["not_covered"]}
        assert not {one for one in whats if "provider" in one}

    def test_providers_are_named_by_their_hosts(self, settings: Any) -> None:
        settings.MEMORYHUB_LLM = settings.MEMORYHUB_EMBEDDINGS = "openai"
        settings.OPENAI_API_KEY = "sk-canary"
        settings.OPENAI_BASE_URL = "https://user:canary@llm.example.com:8443/v1/canary?key=canary"
        settings.MEMORYHUB_EMBEDDING_BASE_URL = ""
        case = issued()
        told = {one["what"]: one["says"] for one in case.receipt["not_covered"]}
        assert "llm.example.com," in told["model_provider"]
        assert "llm.example.com," in told["embedding_provider"]
        assert "canary" not in json.dumps(case.receipt)

    def test_the_provider_without_an_address(self, settings: Any) -> None:
        settings.MEMORYHUB_LLM, settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "openai", "sk", ""
        assert "api.openai.com," in self.covered("model_provider")["says"]

    def test_models_that_no_setting_names_any_more(self) -> None:
        person = factories.end_user()
        factories.fact(person, extractor="llm:gone-1")
        case = issued(person, needles=search_terms.collect(person))
        [told] = [one["says"] for one in case.receipt["not_covered"] if one["what"] == "models"]
        assert "gone-1" in told
        assert "Language models" in read(case).text
        person = factories.end_user()
        whats = {one["what"] for one in issued(person, needles=search_terms.collect(person)).receipt["not_covered"]}
        assert "models" not in whats

    def test_the_memory_of_processes_is_told_as_it_is(self) -> None:
        assert receipts.MEMORY_MINUTES * 60 == cache.IDLE_SECONDS

    def covered(self, what: str) -> dict[str, str]:
        [found] = [one for one in issued().receipt["not_covered"] if one["what"] == what]
        return dict(found)


class TestItNamesNobody:
    @pytest.fixture
    def person(self) -> EndUser:
        return factories.end_user(
            external_id="canary-anna",
            display_name="Canary Anna",
            time_zone="Canary/Zone",
            language="canary",
            metadata={"canary": "canary"},
        )

    def test_no_field_of_the_person_or_the_case_gets_in(self, person: EndUser) -> None:
        texts = ("channel", "reference", "outcome", "extension_reason", "refusal_reason", "hold_reason")
        case = issued(person, **dict.fromkeys(texts, "canary"), needles=b"canary", told="Acme Analytics")
        assert "canary" in repr(list(EndUser.objects.values())).lower()
        for shown in (json.dumps(case.receipt), receipts.page(case), receipts.document(case).decode()):
            assert "canary" not in shown.lower()
            assert str(person.pk) not in shown
            assert "Acme Analytics" in shown

    @pytest.mark.parametrize("told", ["Acme, about canary-anna.", "(CANARY-ANNA)", "Acme\ncanary-anna"])
    def test_a_note_that_names_the_person_stays_out(self, person: EndUser, told: str) -> None:
        assert issued(person, told=told).receipt["told"] == receipts.NAMED

    @pytest.mark.parametrize(
        ("told", "named"),
        [
            ("Acme, about Canary  Anna.", True),
            ("The employer of CANARY\nANNA", True),
            ("已告知林薇的雇主", True),
            ("Canary Annabel Ltd", False),
            ("Acme Analytics", False),
        ],
    )
    def test_nor_does_one_with_the_name_of_the_person(self, person: EndUser, told: str, named: bool) -> None:
        factories.end_user(person.tenant, external_id="x-2", display_name="林薇", merged_into=person)
        case = issued(person, told=told, needles=search_terms.collect(person))
        assert case.receipt["told"] == (receipts.NAMED if named else told)

    def test_an_id_of_several_words(self) -> None:
        case = issued(factories.end_user(external_id="Anna van Dam"), told="Acme (of anna van dam)")
        assert case.receipt["told"] == receipts.NAMED


class TestThePage:
    def test_it_says_what_the_file_says(self) -> None:
        case = issued()
        text = read(case).text
        for said in [str(case.pk), "Turns", "12", "Backups", "Until your backups are deleted.", case.signature]:
            assert said in text
        assert "Episodes" not in text

    def test_of_somebody_who_was_gone_before(self) -> None:
        text = read(issued(counts={}, findings={})).text
        assert "0 records" in text
        assert str(receipt_page.NOBODY) in text
        assert str(receipt_page.SEARCHED) not in text

    def test_it_is_english_for_everybody(self) -> None:
        case = issued()
        english = receipts.page(case)
        with override("zh-hans"):
            assert receipts.page(case) == english

    def test_it_loads_nothing(self) -> None:
        page = read(issued())
        assert page.loaded == []
        assert not {"script", "img", "link", "iframe"} & set(page.tags)

    def test_hostile_texts_are_only_text(self) -> None:
        plain = read(issued()).tags
        for text in hostile.STRINGS:
            case = issued(told=text[:2000].replace("\0", ""), findings={**FINDINGS, "mentions": {"<b>x": 1}})
            assert read(case).tags == plain, text


class TestTheSignature:
    def test_it_verifies_also_as_the_database_gives_it_back(self) -> None:
        case = issued(told="花生 é \U0001f95c")
        case.refresh_from_db()
        assert receipts.verify(case.receipt, case.signature)
        assert receipts.verify(case.receipt, case.signature, key=receipts.public_key())

    @pytest.mark.parametrize("path", [("case",), ("erased", "memories.Turn"), ("moments", "completed"), ("told",)])
    def test_tampering_shows(self, path: tuple[str, ...]) -> None:
        case = issued()
        changed: Any = copy.deepcopy(case.receipt)
        inner = changed
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = 0
        assert not receipts.verify(changed, case.signature)

    @pytest.mark.parametrize("signature", ["", "x", "ä", "AAAA"])
    def test_no_signature(self, signature: str) -> None:
        assert not receipts.verify(issued().receipt, signature)

    def test_of_another_hub(self, settings: Any) -> None:
        case, key = issued(), receipts.public_key()
        settings.MEMORYHUB_PEPPER = "another"
        assert not receipts.verify(case.receipt, case.signature)
        assert receipts.verify(case.receipt, case.signature, key=key)

    def test_what_is_no_key(self) -> None:
        case = issued()
        for key in ("x", "AAAA", "ä"):
            with pytest.raises(ValueError):  # noqa: PT011  (of base64 or of the curve)
                receipts.verify(case.receipt, case.signature, key=key)


def test_the_files_are_private(tmp_path: Path, settings: Any) -> None:
    settings.HOME = tmp_path
    case = issued()
    path = receipts.write_files(case)
    assert sorted(one.name for one in path.parent.iterdir()) == [f"{case.pk}.html", f"{case.pk}.json"]
    assert {stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()} == {0o600}
    told = json.loads(path.read_bytes())
    assert receipts.verify(told["receipt"], told["signature"], key=told["public_key"])
    assert receipts.write_files(case) == path


def test_the_key_is_of_the_pepper(settings: Any) -> None:
    settings.MEMORYHUB_PEPPER = "one"
    key = receipts.public_key()
    assert len(conf.digest("receipt")) == 32
    settings.MEMORYHUB_PEPPER = "other"
    assert receipts.public_key() != key
