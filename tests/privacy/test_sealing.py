"""The chain of the audit trail: what is sealed, when, by whom, and what shows when somebody tampers with it."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from memories import audit, tasks
from memories.models import AuditEvent, AuditSeal, Tenant
from memories.privacy.trail import chain, chain_check, heads, sealing
from memories.privacy.trail.chain_check import ChainFlaw
from tests import factories
from tests.database import PATIENCE, at_once, elsewhere, held
from tests.factories import COMMAND, NOW


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Any) -> Path:
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")
    return tmp_path


def record(tenant: Tenant | None, verb: str = "forget", **over: Any) -> AuditEvent:
    about = factories.end_user if tenant is None else (lambda: tenant)
    given: dict[str, Any] = {"actor": COMMAND, "target": Tenant, "object_id": about().pk, "now": NOW, **over}
    return audit.record(verb=verb, tenant=tenant, **given)


def seal(now: Any = NOW, **over: Any) -> int:
    return sealing.seal(now=now, **{"seconds": 60.0, "wait_seconds": 0.0, **over})


def tamper(*statements: str, **values: Any) -> None:
    """As a superuser does who goes round the triggers."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for statement in statements:
            cursor.execute(statement.format(**values))
        cursor.execute("SET LOCAL session_replication_role = origin")


def flaw_of(tenant: Tenant | None) -> ChainFlaw | None:
    broken = chain_check.check(tenant.pk if tenant else None).broken
    return broken.flaw if broken else None


@pytest.mark.django_db
class TestSealing:
    def test_a_link_vouches_for_what_was_recorded_since_the_one_before(self) -> None:
        tenant = factories.tenant()
        first = [record(tenant) for _ in range(3)]
        assert seal() == 3
        second = record(tenant, now=NOW + timedelta(hours=1))
        assert (seal(), seal()) == (1, 0)
        one, two = chain.of(tenant.pk).order_by("number")
        assert (one.number, one.first_id, one.last_id, one.count) == (1, first[0].pk, first[-1].pk, 3)
        assert (two.number, two.first_id, two.last_id, two.newest_at) == (2, second.pk, second.pk, second.created_at)
        assert (bytes(one.previous), bytes(two.previous)) == (b"", bytes(one.digest))
        report = chain_check.check(tenant.pk)
        assert (report.links, report.sealed, report.unsealed, report.broken) == (2, 4, 0, None)

    def test_each_tenant_has_a_chain_and_so_has_what_is_of_none(self) -> None:
        one, other = factories.tenant(), factories.tenant()
        for tenant in (one, other, None, one):
            record(tenant)
        seal()
        assert {None, one.pk, other.pk} == set(chain_check.chains())
        assert [chain_check.check(key).sealed for key in (one.pk, other.pk, None)] == [2, 1, 1]
        assert AuditSeal.objects.filter(number=1).count() == 3

    def test_what_is_not_sealed_yet_is_counted(self) -> None:
        tenant = factories.tenant()
        record(tenant)
        assert chain_check.check(tenant.pk).unsealed == 1
        seal()
        assert chain_check.check(tenant.pk).unsealed == 0

    def test_a_run_is_bounded_and_the_next_goes_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sealing, "MOST", 2)
        one, other = factories.tenant(), factories.tenant()
        for tenant in (one, other, one, one, other):
            record(tenant)
        assert [seal(seconds=-1.0) for _ in range(4)] == [2, 2, 1, 0]
        assert (flaw_of(one), flaw_of(other)) == (None, None)

    def test_the_worker_seals(self) -> None:
        record(factories.tenant())
        assert tasks.seal_audit() == 1

    def test_a_digest_takes_the_pepper(self, settings: Any) -> None:
        tenant = factories.tenant()
        record(tenant)
        seal()
        settings.MEMORYHUB_PEPPER = "another"
        assert flaw_of(tenant) == ChainFlaw.SEAL_CHANGED

    def test_the_form_of_an_event_is_as_it_was_written_down(self, settings: Any) -> None:
        """A change of it would make all chains look broken."""
        settings.MEMORYHUB_PEPPER = "pepper"
        event = AuditEvent(
            pk=7, tenant_uuid=None, actor_kind="operator", actor_id="1", verb="forget", object_type="Fact",
            object_id="0192f0c1-2345-7000-8000-000000000001", request_id="r", counts={"b": 1, "a": 2}, created_at=NOW,
        )  # fmt: skip
        assert chain.canonical(chain.fields_of(event)).decode() == (
            '{"actor_id":"1","actor_kind":"operator","case_uuid":null,"counts":{"a":2,"b":1},'
            '"created_at":"2026-11-03T09:12:00.000000+00:00","id":7,'
            '"object_id":"0192f0c1-2345-7000-8000-000000000001","object_type":"Fact","request_id":"r",'
            '"tenant_uuid":null,"verb":"forget"}'
        )
        assert chain.leaf(event).hex() == "000000000000000775ae076aab8551ecb175ab2f130a35b3"


@pytest.mark.django_db
class TestTampering:
    """Each way of it, by somebody who may do everything in the database and has no pepper."""

    @pytest.fixture
    def tenant(self) -> Tenant:
        """With three links of two events each, and a neighbour."""
        tenant = factories.tenant()
        for _ in range(3):
            record(tenant)
            record(tenant)
            record(factories.tenant())
            seal()
        return tenant

    @pytest.fixture
    def events(self, tenant: Tenant) -> list[int]:
        return list(AuditEvent.objects.filter(tenant_uuid=tenant.pk).order_by("pk").values_list("pk", flat=True))

    def test_an_honest_chain_holds(self, tenant: Tenant) -> None:
        assert flaw_of(tenant) is None

    @pytest.mark.parametrize(
        ("statement", "flaw", "number"),
        [
            ("UPDATE memories_auditevent SET verb = 'add' WHERE id = {event}", ChainFlaw.CHANGED, 2),
            ("UPDATE memories_auditevent SET counts = '{{\"facts\": 1}}' WHERE id = {event}", ChainFlaw.CHANGED, 2),
            ("UPDATE memories_auditevent SET actor_id = 'x' WHERE id = {event}", ChainFlaw.CHANGED, 2),
            ("UPDATE memories_auditevent SET created_at = created_at + interval '1 s' WHERE id = {event}",
             ChainFlaw.CHANGED, 2),
            ("DELETE FROM memories_auditevent WHERE id = {event}", ChainFlaw.MISSING, 2),
            ("UPDATE memories_auditevent SET tenant_uuid = NULL WHERE id = {event}", ChainFlaw.MISSING, 2),
            ("UPDATE memories_auditevent SET tenant_uuid = '{tenant}' WHERE id = {neighbours}", ChainFlaw.INSERTED, 2),
            ("UPDATE memories_auditseal SET sealed_at = sealed_at - interval '1 s' WHERE id = {seal}",
             ChainFlaw.SEAL_CHANGED, 2),
            ("UPDATE memories_auditseal SET leaves = '' WHERE id = {seal}", ChainFlaw.SEAL_CHANGED, 2),
            ("DELETE FROM memories_auditseal WHERE id = {seal}", ChainFlaw.SEAL_MISSING, 2),
            # By what it then says, none of the events up to there should be left.
            ("UPDATE memories_auditseal SET kind = 'pruning' WHERE id = {seal}", ChainFlaw.INSERTED, 1),
            ("DELETE FROM memories_auditseal WHERE tenant_uuid = '{tenant}' AND number = 3", ChainFlaw.INSERTED, 3),
            ("DELETE FROM memories_auditseal WHERE tenant_uuid = '{tenant}'", ChainFlaw.INSERTED, 1),
        ],
    )  # fmt: skip
    def test_it_shows_where(
        self, tenant: Tenant, events: list[int], statement: str, flaw: ChainFlaw, number: int
    ) -> None:
        link = chain.of(tenant.pk).get(number=2)
        tamper(statement, event=events[2], neighbours=events[3] + 1 - 3, tenant=tenant.pk, seal=link.pk)
        broken = chain_check.check(tenant.pk).broken
        assert broken
        assert (broken.flaw, broken.number) == (flaw, number)
        if flaw in (ChainFlaw.CHANGED, ChainFlaw.MISSING):
            assert broken.event_id == events[2]

    def test_the_last_links_of_all_chains_are_missed_by_the_note(self, tenant: Tenant) -> None:
        tamper("DELETE FROM memories_auditseal WHERE number = 3 OR tenant_uuid <> '{tenant}'", tenant=tenant.pk)
        tamper("DELETE FROM memories_auditevent WHERE id > (SELECT max(last_id) FROM memories_auditseal)")
        assert flaw_of(tenant) == ChainFlaw.TAIL_MISSING
        record(tenant)
        seal()
        # The chain goes on, and what was noted is not written over.
        assert flaw_of(tenant) == ChainFlaw.TAIL_MISSING

    def test_without_the_note_a_tail_would_be_missed_by_nobody(self, tenant: Tenant) -> None:
        heads.place().unlink()
        tamper("DELETE FROM memories_auditseal WHERE number = 3 OR tenant_uuid <> '{tenant}'", tenant=tenant.pk)
        tamper("DELETE FROM memories_auditevent WHERE id > (SELECT max(last_id) FROM memories_auditseal)")
        assert flaw_of(tenant) is None

    def test_the_newest_links_alone_can_be_checked(self, tenant: Tenant, events: list[int]) -> None:
        tamper("UPDATE memories_auditevent SET verb = 'add' WHERE id = {event}", event=events[2])
        assert chain_check.check(tenant.pk, newest=1).broken is None
        assert chain_check.check(tenant.pk, newest=2).broken == chain_check.check(tenant.pk).broken


@pytest.mark.django_db
class TestGuards:
    @pytest.mark.parametrize("table", ["memories_auditevent", "memories_auditseal"])
    @pytest.mark.parametrize(
        "act",
        [
            "TRUNCATE {}",
            "DELETE FROM {}",
            "UPDATE {} SET tenant_uuid = NULL",
            "INSERT INTO {0} SELECT * FROM {0} ON CONFLICT (id) DO UPDATE SET tenant_uuid = NULL",
        ],
    )
    def test_the_database_refuses(self, table: str, act: str) -> None:
        record(factories.tenant())
        seal()
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(act.format(table))

    @pytest.mark.parametrize(("setting", "link", "goes"), [(1, 1, True), (1, 0, False), (0, 1, False)])
    def test_an_event_is_pruned_with_the_setting_and_the_link_alone(self, setting: int, link: int, goes: bool) -> None:
        tenant = factories.tenant()
        event = record(tenant)
        seal()
        if link:
            span = (event.pk, event.pk)
            chain.append(tenant.pk, AuditSeal.SealKind.PRUNING, span=span, count=1, newest_at=NOW, now=NOW)
        with connection.cursor() as cursor:
            if setting:
                cursor.execute("SET LOCAL memoryhub.audit_pruning = 'on'")
        refused: AbstractContextManager[Any] = (
            nullcontext() if goes else pytest.raises(DatabaseError, match="append-only")
        )
        with refused, transaction.atomic():
            AuditEvent.objects.filter(pk=event.pk).delete()
        assert AuditEvent.objects.filter(pk=event.pk).exists() is not goes
        assert flaw_of(tenant) is (ChainFlaw.INSERTED if link and not goes else None)


class TestNote:
    @pytest.mark.django_db
    def test_it_names_the_newest_link_of_each_chain(self, folder: Path) -> None:
        tenant = factories.tenant()
        record(tenant)
        record(None)
        seal()
        record(tenant)
        seal()
        told = json.loads((folder / "audit-heads.json").read_text())
        assert {key: number for key, (number, _) in told.items()} == {str(tenant.pk): 2, "-": 1}
        assert heads.place().stat().st_mode & 0o777 == 0o600
        assert [path.name for path in folder.iterdir()] == ["audit-heads.json"]

    @pytest.mark.django_db
    @pytest.mark.parametrize("content", ["nonsense", '{"-": 3}', None])
    def test_a_folder_that_takes_no_note_keeps_nobody_from_sealing(
        self, folder: Path, settings: Any, content: str | None
    ) -> None:
        if content is None:
            settings.MEMORYHUB_ERASURE_LEDGER = str(folder / "missing" / "erasures.jsonl")
        else:
            heads.place().write_text(content)
        record(factories.tenant())
        assert seal() == 1


@contextmanager
def held_at_second_look(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> Iterator[None]:
    """While the block lasts a transaction is open that began after the sealer looked who is at work."""
    plain, looks = sealing.writers, list[set[str]]()
    with ExitStack() as stack, monkeypatch.context() as patched:

        def look() -> set[str]:
            if looks:
                stack.enter_context(held(work))
            looks.append(plain())
            return looks[-1]

        patched.setattr(sealing, "writers", look)
        yield


@pytest.mark.django_db(transaction=True)
class TestRaces:
    @pytest.fixture
    def tenant(self) -> Tenant:
        return factories.tenant()

    def test_an_event_that_commits_late_is_sealed_in_its_place(self, tenant: Tenant) -> None:
        with held(lambda: record(tenant, "late")) as late:
            event = record(tenant)
            assert late.pk < event.pk
            assert seal() == 0
        assert seal() == 2
        assert flaw_of(tenant) is None
        link = AuditSeal.objects.get()
        assert (link.first_id, link.last_id) == (late.pk, event.pk)

    def test_whoever_seals_what_is_not_decided_breaks_the_chain(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So the test above can fail."""
        monkeypatch.setattr(sealing, "writers", set)
        with held(lambda: record(tenant, "late")):
            record(tenant)
            assert seal() == 1
        assert flaw_of(tenant) == ChainFlaw.INSERTED

    def test_an_id_that_was_given_and_rolled_back_is_waited_for_no_longer(self, tenant: Tenant) -> None:
        def give_up() -> None:
            with transaction.atomic():
                record(tenant)
                transaction.set_rollback(True)

        elsewhere(give_up)
        record(tenant)
        assert seal() == 1
        assert flaw_of(tenant) is None

    def test_it_waits_a_while_for_who_is_at_work(self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
        looked = threading.Event()
        plain = sealing.writers

        def looking() -> set[str]:
            found = plain()
            looked.set()
            return found

        monkeypatch.setattr(sealing, "writers", looking)
        done: list[Any] = []
        with held(lambda: record(tenant, "late")):
            thread = threading.Thread(target=lambda: done.extend(at_once(1, lambda _: seal(wait_seconds=PATIENCE))))
            record(tenant)
            thread.start()
            assert looked.wait(PATIENCE)
        thread.join(PATIENCE)
        assert done == [2]

    def test_who_begins_later_is_not_waited_for(self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
        record(tenant)
        with held_at_second_look(monkeypatch, lambda: record(tenant, "later")):
            assert seal() == 1
        assert seal() == 1
        assert flaw_of(tenant) is None

    def test_of_sealers_at_once_each_event_has_one_seal(self, tenant: Tenant) -> None:
        for _ in range(20):
            record(tenant)
        outcomes = at_once(6, lambda _: seal(wait_seconds=PATIENCE))
        assert sum(outcome for outcome in outcomes if isinstance(outcome, int)) == 20, outcomes
        assert flaw_of(tenant) is None

    def test_sealers_beside_writers(self, tenant: Tenant) -> None:
        def act(index: int) -> None:
            for _ in range(5):
                if index % 3:
                    record(tenant)
                else:
                    seal(wait_seconds=PATIENCE)

        assert at_once(9, act) == [None] * 9
        seal(wait_seconds=PATIENCE)
        report = chain_check.check(tenant.pk)
        assert (report.sealed, report.unsealed, report.broken) == (30, 0, None)
