"""Exports of both profiles, made as the worker makes them."""

import io
import json
import re
from collections.abc import Callable
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import pytest
from django.db import transaction
from django.db.models import F
from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]
from pytest_django import Settings

from memories.audit import Actor
from memories.exceptions import ExportNotReady, LeaseLost, NotFound
from memories.models import ActorKind, CaseState, CaseType, EndUser, Fact, PrivacyCase, PrivacyExport
from memories.privacy import exporting, running
from memories.privacy.case_leases import fail
from memories.privacy.exports import archive, downloads, pieces, schema
from memories.privacy.exports.archive import Heading
from memories.privacy.exports.disclosures import about
from memories.privacy.exports.rows import subject_of
from tests import factories
from tests.database import PATIENCE, blocked, elsewhere, held
from tests.hostile import STRINGS
from tests.privacy import exports, lease

pytestmark = pytest.mark.django_db(transaction=True)
ACCESS, PORTABILITY = CaseType.ACCESS, CaseType.PORTABILITY
COPY = Path(__file__).resolve().parent.parent.parent / "docs/export-schema.json"
Act = Callable[[], Any]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Act], list[str]]:
    """Have somebody do this once, on a connection of their own, after the snapshot was taken and before it is read."""

    def arrange(act: Act) -> list[str]:
        written: list[str] = []

        def write(file: IO[bytes], heading: Heading) -> archive.Counts:
            written.append(heading.subject.person.external_id)
            if len(written) == 1:
                elsewhere(act)
            return archive.write(file, heading)

        monkeypatch.setattr(exporting, "write", write)
        return written

    return arrange


def known(**over: Any) -> EndUser:
    """Of whom little is told: a fact."""
    person = factories.end_user(**over)
    factories.fact(person)
    return person


@pytest.mark.parametrize("profile", [ACCESS, PORTABILITY])
def test_data_is_as_its_schema_says(profile: str) -> None:
    written = exports.files(exports.made(exports.somebody(), profile))
    assert list(written) == ["data.json", "readable.html", "README.txt", "schema.json"]
    schema = json.loads(written["schema.json"])
    Draft202012Validator.check_schema(schema)
    told = json.loads(written["data.json"])
    validator = Draft202012Validator(schema, format_checker=FormatChecker())
    assert list(validator.iter_errors(told)) == []
    assert told["counts"] == {name: len(told[name]) for name in told["counts"]}
    # The schema is strict: what it does not know, or misses, is a fault.
    assert not validator.is_valid({**told, "more": []})
    told["turns"][0].pop("content")
    assert not validator.is_valid(told)
    if profile == ACCESS:
        tells_every_store(told)


def tells_every_store(told: dict[str, Any]) -> None:
    assert {name: count for name, count in told["counts"].items() if not count} == {"exports": 0}
    assert [fact["inferred"] for fact in told["facts"]] == [False, True]
    assert [source["said_by"] for source in told["facts"][0]["evidence"]] == ["user", "assistant"]
    assert told["sessions"][0]["working_memory"]["summary"] == "They talked of a move"


def test_the_documented_schema_is_this_one() -> None:
    """After a change: python -m tests.privacy.export_schema."""
    assert json.loads(COPY.read_text(encoding="utf-8")) == json.loads(json.dumps(schema.document()))


def test_portability_tells_what_the_person_provided() -> None:
    person = exports.somebody()
    factories.fact(person, "Never said", status="rejected")
    factories.fact(person, "Guessed by the assistant", trust="assistant")
    # Who is restricted is told all the same.
    EndUser.objects.filter(pk=person.pk).update(restricted_at=exports.NOW)
    export = exports.made(person, PORTABILITY)
    told = exports.data(export)
    assert told["people"][0]["external_id"] == person.external_id
    assert {"people", "sessions", "turns", "facts", "said_in_groups", "attachments"} == told["counts"].keys()
    assert [turn["content"] for turn in told["turns"]] == ["I moved to Leiden"]
    assert [fact["content"] for fact in told["facts"]] == ["Lives in Leiden"]
    assert [source["quote"] for source in told["facts"][0]["evidence"]] == ["I moved to Leiden"]
    everything = "".join(exports.files(export)[name] for name in ("data.json", "readable.html"))
    for word in ("How nice", "Likes canals", "Never said", "Guessed", "confidence", "They talked", "Runs a bakery"):
        assert word not in everything, word


def test_nobody_else_is_in_it() -> None:
    tenant = factories.tenant()
    person = exports.somebody(tenant)
    stranger = factories.end_user(tenant, external_id="stranger-9", display_name="Stranger")
    factories.session(stranger, [("user", "Secret of a stranger")])
    factories.fact(stranger, "Public word of a stranger", scope="public")
    operator = factories.operator(username="olga-the-operator")
    exports.revise(
        fact=person.facts.first() or factories.fact(person),
        verb="edit", actor=exports.by(operator), before={}, reason="", now=exports.NOW,
    )  # fmt: skip
    everything = "".join(exports.files(exports.made(person)).values()).lower()
    assert "stranger" not in everything
    assert "olga" not in everything
    assert f'"{operator.pk}"' not in everything


def test_the_inside_of_the_hub_is_not_in_it_and_people_read_no_json() -> None:
    person = exports.somebody(metadata={"plan": {"since": 2024, "trial": False, "notes": ["a", "b"]}, "none": None})
    counts = {"django_q.OrmQ": 0, "axes.AccessAttempt": 3}
    exports.case_of(person)
    PrivacyCase.objects.update(preview=counts, counts=counts, findings={"hits": counts}, outcome="Spoke to her")
    written = exports.files(exports.made(person))
    page = written["readable.html"]
    assert "Spoke to her" in page
    # What was asked for, and how far it is, in words; codes are in the details alone.
    assert '<strong>Access</strong> <span class="badge">' in page
    assert "none: –\nplan:\n  notes:\n    a, b\n  since: 2024\n  trial: no" in page
    for inside in (*counts, "&quot;: ", "{&quot;"):
        assert inside not in page, inside
    assert not [name for name in counts if name in written["data.json"]]


def test_no_secret_of_the_hub_is_in_it(settings: Settings) -> None:
    settings.MEMORYHUB_LLM, settings.OPENAI_API_KEY = "openai", "sk-verysecret"
    settings.OPENAI_BASE_URL = "https://name:passw0rd@models.example/v1"
    settings.MEMORYHUB_EMBEDDINGS, settings.MEMORYHUB_RERANK_URL = "openai", "https://rank.example/x?key=k3y"
    written = exports.files(exports.made(factories.end_user()))
    everything = "".join(written.values())
    for secret in (settings.SECRET_KEY, settings.MEMORYHUB_PEPPER, "sk-verysecret", "passw0rd", "k3y"):
        assert secret not in everything
    recipients = json.loads(written["data.json"])["about"]["recipients"]
    assert [(one["kind"], one["name"]) for one in recipients[2:]] == [
        ("model", "models.example"), ("embeddings", "models.example"), ("reranker", "rank.example"),
    ]  # fmt: skip


def test_models_that_no_setting_names_any_more_were_told_all_the_same(settings: Settings) -> None:
    settings.MEMORYHUB_LLM = "off"
    person = factories.end_user()
    assert "model" not in str(about(subject_of(person, ACCESS))["recipients"])
    factories.run(factories.session(person), extractor="llm:gone-1")
    factories.fact(person, extractor="llm:gone-2")
    factories.fact(person, "Said so", extractor="rules-v1")
    factories.fact(factories.end_user(person.tenant), extractor="llm:of-somebody-else")
    told = about(subject_of(person, ACCESS))["recipients"]
    assert [one["name"] for one in told if one["kind"] == "model_asked"] == ["gone-1", "gone-2"]


def test_how_long_the_tenant_keeps_things_is_told() -> None:
    person = factories.end_user()
    plain = about(subject_of(person, ACCESS))
    numbers = {"trash_days": 9, "keep_turns_days": 90, "keep_runs_days": 0, "keep_audit_days": 365}
    factories.set_numbers(person.tenant, **numbers, keep_exports_days=3)
    person.refresh_from_db()
    told = about(subject_of(person, ACCESS))
    new = {one for chapter in told["chapters"] for one in chapter["says"]} - {
        one for chapter in plain["chapters"] for one in chapter["says"]
    }
    assert {re.sub(r"\D+", " ", one).strip() for one in new} == {"90", "9", "365"}
    assert downloads.lifetime(person.tenant) == timedelta(days=3)


def test_the_case_ends_with_it_and_the_same_rows_give_the_same_bytes() -> None:
    person = exports.somebody()
    export = exports.made(person)
    case = PrivacyCase.objects.get()
    assert (case.state, case.counts["turns"], case.counts["facts"]) == (CaseState.COMPLETED, 2, 2)
    assert (export.state, export.size) == ("ready", len(b"".join(pieces.of(export))))
    assert export.made_at
    assert export.expires_at == export.made_at + timedelta(days=7)
    made = []
    for _ in range(2):
        file = io.BytesIO()
        archive.write(file, Heading(subject_of(person, ACCESS), case.pk, exports.NOW, lambda _: None))
        made.append(file.getvalue())
    assert made[0] == made[1]


@pytest.mark.parametrize(("tag", "language"), [("zh_TW", "zh-hans"), ("fr", "en"), ("", "en")])
def test_the_language_of_the_person(tag: str, language: str) -> None:
    written = exports.files(exports.made(known(language=tag, time_zone="Asia/Shanghai")))
    assert f'<html lang="{language}">' in written["readable.html"]
    assert json.loads(written["data.json"])["about"]["language"] == language
    # A fact of 09:12 UTC.
    assert "2026-11-03 17:12" in written["readable.html"]


def test_a_language_that_was_chosen_for_the_file() -> None:
    case = exports.case_of(known(language="en"), ACCESS, language="zh-hans")
    exporting.make(lease.claimed(case))
    written = exports.files(case.exports.get())
    assert '<html lang="zh-hans">' in written["readable.html"]


def test_nothing_written_meanwhile_is_in_it(meanwhile: Callable[[Act], list[str]]) -> None:
    person = known()
    meanwhile(lambda: factories.fact(person, "Said too late"))
    written = exports.files(exports.made(person))
    assert "Said too late" not in "".join(written.values())
    assert "Said too late" in "".join(exports.files(exports.made(person)).values())


def test_who_is_merged_meanwhile_is_told_anew(meanwhile: Callable[[Act], list[str]]) -> None:
    person = known()

    def merge() -> None:
        factories.fact(person, "Of the other record")
        EndUser.objects.filter(pk=person.pk).update(generation=F("generation") + 1)

    written = meanwhile(merge)
    assert "Of the other record" in exports.files(exports.made(person))["data.json"]
    assert len(written) == 2


def erased(person: EndUser) -> None:
    PrivacyExport.objects.filter(case__end_user=person).delete()
    person.delete()


def half_erased(person: EndUser) -> None:
    factories.privacy_case(person, state=CaseState.RUNNING)


# Nothing is kept of who is gone, and the case says so; of who is going nobody could say what is kept.
@pytest.mark.parametrize(("act", "end"), [(erased, ("completed", "")), (half_erased, ("failed", "erased"))])
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_who_is_erased_gets_none(
    meanwhile: Callable[[Act], list[str]], act: Callable[[EndUser], None], end: tuple[str, str], when: str
) -> None:
    person = known()
    work = lease.claimed(exports.case_of(person))
    if when == "before":
        act(person)
    else:
        # begin of an erasure raises the generation as well, but the case alone is enough.
        meanwhile(lambda: act(person))
    exporting.make(work)
    case = PrivacyCase.objects.get(pk=work.case.pk)
    assert (case.state, case.failure, case.counts) == (*end, {})
    assert not PrivacyExport.objects.exists()


def test_whoever_lost_the_lease_throws_it_away(meanwhile: Callable[[Act], list[str]]) -> None:
    work = lease.claimed(exports.case_of(known()))
    rows = PrivacyCase.objects.filter(pk=work.case.pk)
    meanwhile(lambda: rows.update(lease_token=uuid4()))
    with pytest.raises(LeaseLost):
        exporting.make(work)
    assert rows.get().state == CaseState.RUNNING
    assert not PrivacyExport.objects.exists()


def test_an_erasure_begins_before_the_person_is_checked_or_after_the_export_is_there() -> None:
    person = known()

    def begin() -> int:
        return EndUser.objects.filter(pk=person.pk).update(generation=F("generation") + 1)

    with held(lambda: exporting._is_unchanged(person)) as still:
        assert still
        erasure = blocked(begin)
    assert erasure.result(PATIENCE) == 1
    assert not elsewhere(transaction.atomic(lambda: exporting._is_unchanged(person)))


class Killed(BaseException):
    """No except of ours takes it."""


def test_what_a_killed_worker_began_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    case = exports.case_of(known())
    for place in ("write", "_keep", "pieces.add", "_is_unchanged"):
        work = lease.claimed(case)
        with monkeypatch.context() as patch:
            patch.setattr(f"memories.privacy.exporting.{place}", killed)
            with pytest.raises(Killed):
                exporting.make(work)
        assert not case.exports.exclude(state="making").exists()
        with pytest.raises(ExportNotReady):
            downloads.take_of_case(tenant=case.tenant, case_id=case.pk, actor=factories.COMMAND, now=exports.NOW)
        PrivacyCase.objects.filter(pk=case.pk).update(lease_until=None)
    assert case.exports.get().pieces.exists()
    exporting.make(lease.claimed(case))
    assert case.exports.get().state == "ready"


def test_what_a_case_that_failed_had_begun_is_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    case = exports.case_of(known())
    monkeypatch.setattr(exporting, "_is_unchanged", killed)
    work = lease.claimed(case)
    with pytest.raises(Killed):
        exporting.make(work)
    downloads.sweep_exports(exports.NOW)
    assert case.exports.get().pieces.exists()
    fail(work, "database")
    downloads.sweep_exports(exports.NOW)
    assert not case.exports.exists()


def test_a_file_of_many_pieces_is_whole_and_its_case_counts_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process holds more than a piece of it."""
    person = known()
    factories.session(person, [("user", f"Turn {number}") for number in range(450)])
    work = lease.claimed(exports.case_of(person))
    counted: list[int] = []
    monkeypatch.setattr(pieces, "PIECE_BYTES", 1_000)
    monkeypatch.setattr(work, "check", lambda: counted.append(work.progress_amid().get("counts", {}).get("turns", 0)))
    exporting.make(work)
    export = work.case.exports.get()
    sizes = [len(content) for content in export.pieces.values_list("content", flat=True)]
    assert sizes[:-1] == [1_000] * (len(sizes) - 1)
    assert (sum(sizes), len(sizes) > 5) == (export.size, True)
    assert len(exports.data(export)["turns"]) == 450
    # What keep_alive() stores beside the step.
    assert {200, 400, 450} <= set(counted)


def killed(*_: Any, **__: Any) -> None:
    raise Killed


def test_it_ends_while_it_is_read_once_the_lease_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    work = lease.claimed(exports.case_of(known()))
    work.is_lost.set()
    # At the first look, not only at the end.
    monkeypatch.setattr(exporting, "_keep", killed)
    with pytest.raises(LeaseLost):
        exporting.make(work)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def tags_of(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    return tags


def test_hostile_text_stays_text() -> None:
    person = exports.somebody()
    tame = tags_of(exports.files(exports.made(person))["readable.html"])
    factories.session(person, [("user", text) for text in STRINGS])
    for number, text in enumerate(STRINGS):
        factories.fact(person, f"{number} {text}", raw=text, tags=[text], structured={text: text})
        factories.episode(person.sessions.first() or factories.session(person), text[:200], first_number=number + 2,
                          last_number=number + 2)  # fmt: skip
    EndUser.objects.filter(pk=person.pk).update(display_name=STRINGS[2], metadata={STRINGS[3]: STRINGS[4]})
    page = exports.files(exports.made(person))["readable.html"]
    assert "alert(3)" in page
    wild = tags_of(page)
    assert (wild.names, wild.attributes) == (tame.names, tame.attributes)
    assert not wild.names & {"script", "img", "iframe", "form", "link", "object"}
    # The positive control: the parser sees what is not escaped.
    assert tags_of("".join(STRINGS)).names & {"img", "iframe"}


def test_facts_of_the_same_moment_keep_an_order() -> None:
    person = factories.end_user()
    for number in range(5):
        factories.fact(person, f"Fact {number}")
    told = exports.data(exports.made(person))["facts"]
    assert [row["id"] for row in told] == [str(pk) for pk in Fact.objects.order_by("pk").values_list("pk", flat=True)]


@pytest.fixture
def erasable(settings: Settings, tmp_path: Path) -> EndUser:
    """An export and the erasure of its person, both as they are, in one another's way."""
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")
    settings.HOME = tmp_path
    return exports.somebody()


def erase(person: EndUser) -> PrivacyCase:
    def run() -> PrivacyCase:
        case = factories.privacy_case(person, type="erasure", state="approved")
        done: PrivacyCase = running.carry_out(case_id=case.pk, now=factories.NOW)
        return done

    # Not on this connection, which reads a snapshot.
    return elsewhere(run)


def test_nothing_is_made_of_who_is_erased_meanwhile(erasable: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    case = exports.case_of(erasable)
    work = lease.claimed(case)

    def write(file: IO[bytes], heading: Heading) -> archive.Counts:
        counts = archive.write(file, heading)
        assert counts["turns"] == 2
        assert erase(erasable).state == CaseState.COMPLETED
        return counts

    monkeypatch.setattr(exporting, "write", write)
    with pytest.raises(LeaseLost):
        exporting.make(work)
    # Whoever takes it up then finds nobody.
    ended = running.carry_out(case_id=case.pk, now=factories.NOW)
    assert (ended.state, ended.failure) == (CaseState.COMPLETED, "")
    assert not PrivacyExport.objects.exists()


def test_a_link_leads_nowhere_once_the_person_is_erased(erasable: EndUser) -> None:
    actor = Actor(kind=ActorKind.OPERATOR, id="1")
    export = exports.made(erasable)
    assert export.made_at
    token = downloads.link_for(export, actor, export.made_at)
    assert downloads.look(token, export.made_at)
    assert erase(erasable).state == CaseState.COMPLETED
    with pytest.raises(NotFound):
        downloads.take(token, export.made_at)
