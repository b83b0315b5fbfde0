"""An export and the erasure of its person, both as they are, in one another's way."""

from pathlib import Path
from typing import IO, Any

import pytest
from pytest_django import Settings

from memories.audit import Actor
from memories.exceptions import LeaseLost, NotFound
from memories.models import ActorKind, CaseState, EndUser, PrivacyCase, PrivacyExport
from memories.privacy import exporting
from memories.privacy.exports import archive, downloads
from memories.privacy.exports.archive import Heading
from tests import factories
from tests.database import elsewhere
from tests.privacy import exports, lease

# Not there while the two are made apart.
running: Any = pytest.importorskip("memories.privacy.running")

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def person(settings: Settings, tmp_path: Path) -> EndUser:
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


def test_nothing_is_made_of_who_is_erased_meanwhile(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    case = exports.case_of(person)
    work = lease.claimed(case)

    def write(file: IO[bytes], heading: Heading) -> archive.Counts:
        counts = archive.write(file, heading)
        assert counts["turns"] == 2
        assert erase(person).state == CaseState.COMPLETED
        return counts

    monkeypatch.setattr(exporting, "write", write)
    with pytest.raises(LeaseLost):
        exporting.make(work)
    # Whoever takes it up then finds nobody.
    ended = running.carry_out(case_id=case.pk, now=factories.NOW)
    assert (ended.state, ended.failure) == (CaseState.COMPLETED, "")
    assert not PrivacyExport.objects.exists()


def test_a_link_leads_nowhere_once_the_person_is_erased(person: EndUser) -> None:
    actor = Actor(kind=ActorKind.OPERATOR, id="1")
    export = exports.made(person)
    assert export.made_at
    token = downloads.link_for(export, actor, export.made_at)
    assert downloads.look(token, export.made_at)
    assert erase(person).state == CaseState.COMPLETED
    with pytest.raises(NotFound):
        downloads.take(token, export.made_at)
