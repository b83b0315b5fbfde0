"""A hub's own export comes in by an upload as any source: checked, counted, once after a kill, taken back whole."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from django.apps import apps
from django.conf import LazySettings
from django.utils import timezone

from memories.curation.imports import verbs
from memories.curation.imports.verbs import ImportOptions
from memories.imports import tasks, working
from memories.imports.runs import Run
from memories.models import Agent, AuditEvent, EndUser, Fact, Import, PrivacyCase, Session, Tenant, Turn
from memories.privacy.stores.linked import STORES
from tests import factories
from tests.api.conftest import Hub, hub_of
from tests.database import PATIENCE, elsewhere
from tests.imports.test_round_trip import assert_same, known, written
from tests.imports.test_uploaded import packed, send, worked
from tests.privacy.exports import data, made, somebody

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hub(transactional_db: None, settings: LazySettings, tmp_path: Path) -> Hub:
    settings.HOME = tmp_path
    return hub_of(factories.tenant(slug="elsewhere"))


@pytest.fixture
def person(hub: Hub) -> EndUser:
    return known()


@pytest.fixture
def export(person: EndUser, tmp_path: Path) -> bytes:
    return written(person, tmp_path / "export.zip").read_bytes()


def vouched(tenant: Tenant, export: bytes, tmp_path: Path, **options: Any) -> Import:
    """As an operator uploads it who believes what was said there."""
    path = tmp_path / "again.zip"
    path.write_bytes(export)
    with path.open("rb") as file:
        row = verbs.upload(
            tenant=tenant,
            file=file,
            options=ImportOptions(vouched=True, **options),
            dry_run=False,
            actor=factories.COMMAND,
            now=timezone.now(),
        )
    while not tasks.import_some():
        """Another slice."""
    row.refresh_from_db()
    return row


def held(tenant: Tenant) -> dict[str, int]:
    """Rows of the tenant with something about a person, by table."""
    tables = {store.model: apps.get_model(store.model) for store in STORES}
    counts = {name: model._default_manager.filter(tenant=tenant).count() for name, model in tables.items()
              if any(field.name == "tenant" for field in model._meta.fields)}  # fmt: skip
    return {name: count for name, count in counts.items() if count}


def undone(hub: Hub, row: Any) -> Mapping[str, Any]:
    answer = hub.client.post(f"/imports/{row['id']}/undo", {})
    assert answer.status_code == 202, answer.content
    found: Mapping[str, Any] = worked(hub.client, row)
    assert found["status"] == "undone", found
    return found


def test_what_somebody_vouches_for_comes_back_as_it_was_and_goes_whole(
    hub: Hub, person: EndUser, export: bytes, tmp_path: Path
) -> None:
    before = held(hub.tenant)
    row = vouched(hub.tenant, export, tmp_path, user_id="u-9")
    assert (row.state, row.failure, row.refused) == ("done", "", {}), row.failure
    here = EndUser.objects.get(tenant=hub.tenant, external_id="u-9")
    assert_same(data(made(person)), data(made(here)), here)
    # The case of the export is no part of what came.
    PrivacyCase.objects.filter(tenant=hub.tenant).delete()
    told = undone(hub, {"id": str(row.pk)})
    assert held(hub.tenant) == before
    assert {name: told["counts"].get(name) for name in ("people_undone", "people_kept", "kept")} == {
        "people_undone": 1, "people_kept": None, "kept": None,
    }  # fmt: skip
    # It can come again.
    assert vouched(hub.tenant, export, tmp_path, user_id="u-9").state == "done"


def test_by_api_nothing_has_more_trust_than_the_person(hub: Hub, export: bytes) -> None:
    sent = send(hub.client, export, dry_run="true")
    checked = worked(hub.client, sent)
    assert (checked["status"], checked["source"], checked["failure"]) == ("checked", "memory-hub", None), checked
    assert [one.objects.filter(tenant=hub.tenant).count() for one in (EndUser, Turn, Fact, Agent)] == [0, 0, 0, 0]
    [listed] = checked["preview"]["people"]
    assert (listed["name"], listed["messages"], listed["conversations"]) == ("u-1", 2, 1)
    assert {one["text"] for one in checked["preview"]["samples"]} >= {"I moved to Leiden"}
    begun = hub.client.post(f"/imports/{sent['id']}/resume", {"authors": {"u-1": "anna"}})
    assert begun.status_code == 202
    done = worked(hub.client, sent)
    told = [{name: one[name] for name in ("counts", "left_out", "refused")} for one in (checked, done)]
    assert told[0] == told[1]
    assert (done["status"], done["left_out"]["groups"] > 0) == ("done", True)
    [here] = EndUser.objects.filter(tenant=hub.tenant)
    assert here.external_id == "anna"
    assert {item.namespace for item in here.store_items.all()} == {"memories.anna"}
    boat = Fact.objects.get(tenant=hub.tenant, content="Owns a boat")
    assert (boat.trust, boat.binding) == ("user", False)
    assert undone(hub, sent)["counts"]["people_undone"] == 1
    assert held(hub.tenant) == {}


def test_the_person_can_be_left_out(hub: Hub, export: bytes) -> None:
    done = worked(hub.client, send(hub.client, export, authors=json.dumps({"u-1": ""})))
    assert (done["status"], done["counts"]) == ("done", {})
    assert done["left_out"]["not_chosen"] > 10
    assert held(hub.tenant) == {}


def test_what_is_the_persons_own_stays_and_what_the_export_wrote_is_taken_back(hub: Hub, export: bytes) -> None:
    anna = factories.end_user(hub.tenant, external_id="anna", display_name="Anna")
    factories.fact(anna, "Likes canals")
    before = held(hub.tenant)
    was = {name: getattr(anna, name) for name in ("display_name", "time_zone", "language", "metadata", "serve")}
    done = worked(hub.client, send(hub.client, export, user_id="anna"))
    assert (done["status"], done["counts"]["duplicates"] > 0) == ("done", True), done
    assert Fact.objects.filter(tenant=hub.tenant, content="Likes canals").count() == 1
    told = undone(hub, done)["counts"]
    assert ("people_undone" in told, "people_kept" in told) == (False, False)
    assert held(hub.tenant) == before
    anna.refresh_from_db()
    assert {name: getattr(anna, name) for name in was} == was


def test_what_somebody_changed_since_stays_with_the_person(hub: Hub, export: bytes) -> None:
    done = worked(hub.client, send(hub.client, export, user_id="anna"))
    boat = Fact.objects.get(tenant=hub.tenant, content="Owns a boat")
    assert hub.client.call("PATCH", f"/facts/{boat.pk}", {"importance": 0.9}).status_code == 200
    told = undone(hub, done)["counts"]
    assert (told["kept"], told["people_kept"], told.get("people_undone")) == (1, 1, None)
    assert list(Fact.objects.filter(tenant=hub.tenant).values_list("content", flat=True)) == ["Owns a boat"]


def test_after_a_kill_each_row_is_stored_and_counted_once(
    hub: Hub, export: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(Exception):
        """The worker is gone: it notes nothing more."""

    whole = worked(hub.client, send(hub.client, export, user_id="berta"))
    counts = whole["counts"]
    taken = {"times": 0}
    take = Run._take

    def killed(self: Any, record: Any) -> None:
        take(self, record)
        taken["times"] += 1
        if taken["times"] in (4, 11, 15):
            raise KilledError

    monkeypatch.setattr(Run, "_take", killed)
    sent = send(hub.client, export, user_id="anna")
    for _ in range(3):
        work = working.claim(Import.objects.get(pk=sent["id"]).pk)
        assert work
        with pytest.raises(KilledError):
            working.run(work, now=timezone.now())
        Import.objects.update(lease_token=None, lease_until=None)
    done = worked(hub.client, sent)
    assert (done["status"], {**done["counts"], "waiting": 0}) == ("done", {**counts, "waiting": 0})
    people = [EndUser.objects.get(tenant=hub.tenant, external_id=name) for name in ("anna", "berta")]
    assert people[0].facts.count() == people[1].facts.count()
    assert people[0].turns.count() == people[1].turns.count() == 2


def test_nobody_waits_for_a_dry_run(hub: Hub, export: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its transaction is as long as the export: somebody posts for the person meanwhile, in another connection."""
    posted: list[int] = []
    finish = Run.flush

    def amid(self: Any) -> None:
        if not posted:
            posted.append(0)
            talk = {"user_id": "u-1", "session_id": "s", "messages": [{"role": "user", "content": "Hello"}]}
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(elsewhere, lambda: hub.client.post("/turns", talk)).result(PATIENCE)
            posted[0] = answer.status_code
        finish(self)

    monkeypatch.setattr(Run, "flush", amid)
    checked = worked(hub.client, send(hub.client, export, dry_run="true"))
    assert (checked["status"], posted) == ("checked", [202])
    assert Turn.objects.filter(tenant=hub.tenant).count() == 1


def test_an_archive_with_several_people(hub: Hub, tmp_path: Path) -> None:
    files = {}
    for name in ("u-1", "u-2"):
        other = somebody(factories.tenant(slug=f"of-{name}"), external_id=name)
        with ZipFile(written(other, tmp_path / f"{name}.zip")) as archive:
            files[f"{name}/data.json"] = archive.read("data.json").decode()
    done = worked(hub.client, send(hub.client, packed(files)))
    assert done["status"] == "done", done
    people = EndUser.objects.filter(tenant=hub.tenant).order_by("external_id")
    assert [(one.external_id, one.turns.count()) for one in people] == [("u-1", 2), ("u-2", 2)]
    assert undone(hub, done)["counts"]["people_undone"] == 2
    assert held(hub.tenant) == {}


def test_an_export_of_somebody_restricted_is_refused(hub: Hub, person: EndUser, tmp_path: Path) -> None:
    EndUser.objects.filter(pk=person.pk).update(restricted_at=timezone.now())
    body = written(person, tmp_path / "restricted.zip").read_bytes()
    done = worked(hub.client, send(hub.client, body))
    assert (done["status"], done["failure"], Session.objects.filter(tenant=hub.tenant).count()) == (
        "failed", "restricted", 0,
    )  # fmt: skip
    assert AuditEvent.objects.filter(verb="fail").count() == 1
