"""Where things may hide of which no model tells, and what may stay: exceptions, other people's words, short ids."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ, Task
from django_q.signing import SignedPackage
from psycopg.pq import TransactionStatus

from memories import conf
from memories.audit import record
from memories.models import EndpointState, EndUser, Fact, FactRevision, PrivacyCase, Turn
from memories.privacy import verification
from memories.privacy.searching import search_terms, tables, verdicts
from memories.privacy.searching.ownership import Ownership
from memories.retrieval import turn_files
from tests import factories
from tests.database import elsewhere
from tests.factories import COMMAND, NOW
from tests.privacy.test_verification import CHINESE, NAME, SAID, run, zipped

pytestmark = pytest.mark.django_db


@pytest.fixture
def person(db: None) -> EndUser:
    someone = factories.end_user(external_id=NAME, display_name="Zaphod Beeblebrox", metadata={"crm": "CRM-77123-XY"})
    session = factories.session(someone, [("user", SAID), ("assistant", CHINESE)], session_id="s-zaphod-1")
    factories.session(someone, [("user", "Hello")], session_id="default")
    factories.fact(someone, "Keeps otters behind the bakery in Kraków", tags=["otters of Kraków", "animals"])
    factories.run(session)
    return someone


@pytest.fixture(autouse=True)
def home(settings: LazySettings, tmp_path: Path) -> Path:
    settings.HOME = tmp_path
    return tmp_path


def erased(person: EndUser, **over: Any) -> PrivacyCase:
    row = factories.privacy_case(person, state="verifying", needles=search_terms.collect(person), **over)
    EndUser.objects.filter(pk=person.pk).delete()
    row.refresh_from_db()
    return row


def hits(case: PrivacyCase) -> dict[str, int]:
    return verification.verify(case).hits


def mentions(case: PrivacyCase) -> dict[str, int]:
    return verification.verify(case).mentions


def test_queues_and_results_and_sign_ins_are_unpacked(person: EndUser) -> None:
    case = erased(person)
    times = {"started": timezone.now(), "stopped": timezone.now()}
    for text in (SAID, CHINESE, NAME):
        task = {"id": "1", "name": "n", "func": "f", "args": (text,), "kwargs": {}, "started": timezone.now()}
        OrmQ.objects.create(key="k", payload=SignedPackage.dumps(task), lock=timezone.now())
        OrmQ.objects.create(key="k", payload=SignedPackage.dumps(task, compressed=True), lock=timezone.now())
        Task.objects.create(id=text[:9], name="n", func="f", args=(1, [text]), result={"said": text}, **times)
        browser = SessionStore()
        browser["_messages"] = json.dumps([text] * 3)
        browser.save()
    assert hits(case) == {
        "django_q.OrmQ.payload": 6,
        "django_q.Task.args": 3,
        "django_q.Task.result": 3,
        "sessions.Session.session_data": 3,
    }


def test_ids_are_found_as_a_pickle_has_them(person: EndUser) -> None:
    case = erased(person)
    OrmQ.objects.create(key="k", payload=SignedPackage.dumps({"args": (person.pk,)}), lock=timezone.now())
    OrmQ.objects.create(key="k", payload=SignedPackage.dumps({"args": (str(person.pk),)}), lock=timezone.now())
    run("CREATE TABLE planted (one uuid, other bytea, third text)")
    run("INSERT INTO planted VALUES (%s, %s, %s)", person.pk, person.pk.bytes, person.pk.hex)
    found = hits(case)
    assert found == {f"public.planted.{one}": 1 for one in ("one", "other", "third")} | {"django_q.OrmQ.payload": 2}


def test_a_session_that_the_endpoint_failed_at_is_found(person: EndUser) -> None:
    session = person.sessions.first()
    case = erased(person)
    EndpointState.objects.update_or_create(defaults={"last_session": session.pk if session else None})
    assert hits(case) == {"memories.EndpointState.last_session": 1}


def test_vectors_are_told_by_their_digests(person: EndUser) -> None:
    from memories.embedding import vectors

    while vectors.embed_some().moved:
        """Until every text has its vector."""
    run("CREATE TABLE planted AS SELECT * FROM memories_turnvector")
    run("ALTER TABLE planted DROP COLUMN turn_id, DROP COLUMN end_user_id, DROP COLUMN session_id, DROP COLUMN id")
    case = erased(person)
    assert hits(case) == {"public.planted.vector": 3}


def test_samples_of_the_planner_are_read(person: EndUser) -> None:
    case = erased(person)
    run("CREATE TABLE planted AS SELECT %s::text AS held FROM generate_series(1, 50)", SAID)
    run("ANALYZE planted")
    run("DELETE FROM planted")
    # ANALYZE of an empty table leaves the old samples where they are.
    run("ANALYZE planted")
    assert hits(case) == {"pg_stats:public.planted.held": 1}


def test_samples_of_ids_say_nothing_of_anybody(person: EndUser) -> None:
    run("ANALYZE")
    case = erased(person)
    # Of an emptied table they stay.
    run("ANALYZE")
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stats WHERE histogram_bounds::text LIKE %s", [f"%{person.pk}%"])
        most = cursor.fetchall()[0][0]
        cursor.execute("SELECT count(*) FROM pg_stats WHERE most_common_vals::text LIKE %s", [f"%{person.pk}%"])
        assert most + cursor.fetchall()[0][0]
    found = verification.verify(case)
    assert not [place for place in found.hits if place.endswith((".id", ".end_user", ".session"))]
    assert "pg_stats:ids" in found.skipped


def test_a_value_that_somebody_has_as_well_may_be_in_samples(person: EndUser) -> None:
    other = factories.end_user(person.tenant)
    factories.session(other, [("user", SAID)])
    case = erased(person)
    run("CREATE TABLE planted AS SELECT %s::text AS held FROM generate_series(1, 50)", SAID)
    run("ANALYZE planted")
    run("DELETE FROM planted")
    found = verification.verify(case)
    assert found.hits == {}
    assert found.mentions == {"memories.Turn.content": 1, "pg_stats:public.planted.held": 1}


def test_large_objects_are_read(person: EndUser) -> None:
    case = erased(person)
    run("SELECT lo_from_bytea(0, %s)", SAID.encode())
    assert hits(case) == {"pg_largeobject.data": 1}


def test_statements_of_others_are_read(person: EndUser) -> None:
    case = erased(person)
    # What an idle connection did last.
    assert hits(case) == {}
    statement = f"SELECT 1 -- {SAID}"

    def look() -> dict[str, int]:
        run(statement)
        return elsewhere(lambda: _views(case))

    assert look()["pg_stat_activity.query"] >= 1


def _views(case: PrivacyCase) -> dict[str, int]:
    """On a connection that does not see what the test has not committed."""
    search = verification._TraceSearch(search_terms.opened(case) or search_terms.SearchTerms(), case)
    with tables.servers() as [server]:
        search.read_views(server)
    return dict(search.hits)


def test_files_are_read_but_not_the_databases(person: EndUser, home: Path, settings: Any) -> None:
    case = erased(person)
    settings.MEMORYHUB_ARCHIVE = str(home / "archive")
    for name in ("worker.log", "receipts/one.json", "postgres/data/1", "tiktoken/a", "archive/base/1/data"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"10:00 {CHINESE} said")
    (home / "backup").write_bytes(b"PGDMP" + SAID.encode())
    found = verification.verify(case)
    assert found.hits == {"files:worker.log": 1, "files:receipts": 1}
    assert {"files:postgres", "files:tiktoken", "files:backups"} <= set(found.skipped)


def test_of_an_index_it_is_read_whose_it_is(person: EndUser, home: Path) -> None:
    case = erased(person)
    (home / "indexes").mkdir()
    for name, whose in (("theirs", uuid.uuid4()), ("left", person.pk)):
        head = turn_files.MAGIC + json.dumps({"person": str(whose)}).encode()
        (home / "indexes" / f"{name}.turns").write_bytes(head.ljust(turn_files.HEAD) + SAID.encode())
    found = verification.verify(case)
    assert found.hits == {"files:indexes": 1}
    assert "files:indexes" in found.skipped


def test_a_file_with_another_persons_export_is_theirs(person: EndUser, home: Path) -> None:
    friend = factories.end_user(person.tenant)
    exported = factories.privacy_case(friend, type="access", state="completed")
    gone = factories.end_user()
    of_nobody = factories.privacy_case(gone, type="access", state="completed")
    gone.delete()
    case = erased(person)
    (home / "exports").mkdir()
    (home / "exports" / f"{exported.pk}.zip").write_bytes(zipped(f"Ask {NAME} or {person.pk}"))
    found = verification.verify(case)
    assert (found.hits, found.mentions) == ({}, {"files:exports": 1})
    for name in (f"{of_nobody.pk}.zip", f"{case.pk}.zip", "export.zip"):
        (home / "exports" / name).write_bytes(zipped(f"Ask {NAME}"))
    assert hits(case) == {"files:exports": 3}


def test_the_ledger_is_read_wherever_it_lies(person: EndUser, home: Path, settings: LazySettings) -> None:
    case = erased(person)
    for folder in (home, home.parent / f"{home.name}-elsewhere"):
        folder.mkdir(exist_ok=True)
        ledger = folder / "erasures.jsonl"
        settings.MEMORYHUB_ERASURE_LEDGER = str(ledger)
        ledger.write_text(json.dumps({"case": str(case.pk)}))
        assert hits(case) == {}
        for said in (str(person.pk), NAME):
            ledger.write_text(json.dumps({"people": [said]}))
            assert hits(case) == {"files:ledger": 1}
        ledger.unlink()


def test_a_large_file_is_read_across_the_borders(person: EndUser, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = erased(person)
    monkeypatch.setattr("memories.privacy.searching.files.CHUNK_BYTES", 10_000)
    (home / "big.log").write_text("x " * 4_990 + SAID + " y" * 9_000)
    assert hits(case) == {"files:big.log": 1}


def test_the_trail_keeps_ids_but_no_words(person: EndUser) -> None:
    run_id = person.runs.values_list("pk", flat=True)[0]
    case = erased(person)
    record(actor=COMMAND, verb="delete", target=EndUser, object_id=person.pk, tenant=person.tenant, now=NOW)
    event = record(actor=COMMAND, verb="write", target=Fact, object_id=run_id, tenant=person.tenant, now=NOW)
    run("ANALYZE memories_auditevent")
    assert hits(case) == {}
    type(event).objects.create(
        actor_kind="run", actor_id=str(run_id), verb="x", object_type="y", object_id=case.pk, created_at=NOW
    )
    assert hits(case) == {}
    counts = {"said": SAID}
    record(actor=COMMAND, verb="x", target=Fact, object_id=case.pk, tenant=None, now=NOW, counts=counts)  # type: ignore[arg-type]
    assert hits(case) == {"memories.AuditEvent.counts": 1}


def test_every_exception_says_why() -> None:
    for place, (kinds, reason) in verdicts.KEPT.items():
        assert kinds, place
        assert len(reason) > 20, place


def test_words_about_the_persons_own_cases_stay_until_the_case_is_closed(person: EndUser) -> None:
    earlier = factories.privacy_case(person, reference=NAME, type="access")
    case = erased(person, reference=NAME)
    assert hits(case) == {}
    factories.privacy_case(factories.end_user(), reference=NAME)
    found = verification.verify(case)
    assert found.hits == {}
    PrivacyCase.objects.filter(pk=earlier.pk).update(receipt={"subject": NAME})
    assert hits(case) == {"memories.PrivacyCase.receipt": 1}


def test_what_others_said_of_the_person_or_as_they_did_is_theirs(person: EndUser) -> None:
    friend = factories.end_user(person.tenant)
    factories.session(friend, [("user", f"Write to {NAME}, please"), ("assistant", "Zaphod Beeblebrox? I will")])
    factories.fact(friend, f"Knows {NAME}", raw=f"Write to {NAME}")
    # Of two who say the same, what is said in another tenant is told to nobody here.
    for other in (friend, factories.end_user()):
        factories.session(other, [("user", SAID)], session_id="default")
    case = erased(person)
    # A kept answer belongs to whom it tells of.
    factories.idempotency_record(friend, body=json.dumps({"said": f"ask {NAME}"}).encode())
    found = verification.verify(case)
    assert found.hits == {}
    assert found.mentions == {
        "memories.Turn.content": 2, "memories.Fact.content": 1, "memories.Fact.raw": 1,
        "memories.IdempotencyRecord.body": 1,
    }  # fmt: skip


def test_a_memory_that_is_for_the_person_names_them(person: EndUser) -> None:
    friend = factories.end_user(person.tenant)
    fact = factories.fact(friend, scope="limited", allowed_users=[NAME])
    case = erased(person)
    assert hits(case) == {"memories.Fact.allowed_users": 1}
    Fact.objects.filter(pk=fact.pk).update(allowed_users=[])
    fact.revisions.create(
        tenant_id=fact.tenant_id,
        version=9,
        verb="x",
        actor_kind="command",
        created_at=NOW,
        after={"allowed_users": [NAME]},
    )
    assert hits(case) == {"memories.FactRevision.after": 1}


def test_ids_that_others_have_as_well_are_no_trace(person: EndUser) -> None:
    for other in (factories.end_user(person.tenant), factories.end_user()):
        factories.session(other, [("user", "Hello")], session_id="default")
        factories.fact(other, tags=["animals"])
    # Another tenant's person of that id is somebody else.
    factories.end_user(external_id=NAME, metadata={"mail": NAME})
    run("ANALYZE memories_session, memories_fact")
    case = erased(person)
    run("ANALYZE memories_session, memories_fact, memories_enduser")
    found = verification.verify(case)
    assert (found.hits, found.mentions) == ({}, {})


def test_who_comes_under_the_id_again_is_somebody_else(person: EndUser) -> None:
    case = erased(person)
    again = factories.end_user(person.tenant, external_id=NAME)
    factories.session(again, [("user", f"I am {NAME}")], session_id="s-zaphod-1")
    factories.idempotency_record(again, body=json.dumps({"user_id": NAME}).encode())
    found = verification.verify(case)
    assert (found.hits, found.mentions) == ({}, {})
    # But nothing that was said before, in what nobody can be named for.
    factories.idempotency_record(factories.end_user(), body=b"{}").end_users.clear()
    run("UPDATE memories_idempotencyrecord SET body = %s WHERE body = '{}'", json.dumps({"t": CHINESE}).encode())
    assert hits(case) == {"memories.IdempotencyRecord.body": 1}


@pytest.mark.parametrize("name", ["1", "u1", "小明", "assistant"])
def test_an_id_of_few_letters_counts_as_a_whole_value_where_people_are_named(person: EndUser, name: str) -> None:
    EndUser.objects.filter(pk=person.pk).update(external_id=name)
    person.refresh_from_db()
    friend = factories.end_user(person.tenant)
    factories.session(friend, [("user", f"{name} u1 1 小明")], session_id=name)
    fact = factories.fact(friend, scope="limited", allowed_users=[name])
    case = erased(person)
    run("CREATE TABLE planted (user_id text, note text, more jsonb)")
    run("INSERT INTO planted VALUES (%s, %s, '{}'), (%s, '', %s)", "u9", name, "11", json.dumps({"user_id": name}))
    assert hits(case) == {"memories.Fact.allowed_users": 1, "public.planted.more": 1}
    Fact.objects.filter(pk=fact.pk).delete()
    run("INSERT INTO planted VALUES (%s, '', '{}')", name)
    assert hits(case) == {"public.planted.user_id": 1, "public.planted.more": 1}


def test_ids_are_words_of_their_own(person: EndUser) -> None:
    EndUser.objects.filter(pk=person.pk).update(external_id="user-1234")
    person.refresh_from_db()
    case = erased(person)
    run("CREATE TABLE planted (held text)")
    run("INSERT INTO planted VALUES ('user-12345'), ('superuser-1234')")
    assert hits(case) == {}
    run("INSERT INTO planted VALUES ('a user-1234 b'), ('user-1234')")
    assert hits(case) == {"public.planted.held": 2}


def test_tables_are_read_in_slices_and_rows_are_not_lost(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.privacy.searching.tables.SLICE_PAGES", 1)
    monkeypatch.setattr("memories.privacy.searching.tables.BLOCK_BYTES", 1000)
    case = erased(person)
    before = verification.verify(case).rows
    run("CREATE TABLE planted AS SELECT repeat('x', 900) || CASE WHEN n %% 50 = 7 THEN %s ELSE '' END AS held "
        "FROM generate_series(1, 500) n", SAID)  # fmt: skip
    found = verification.verify(case)
    assert found.rows - before == 500
    assert found.hits == {"public.planted.held": 10}


def revised(fact: Fact, *, version: int = 2) -> FactRevision:
    """A revision has no key of its person: that is looked up."""
    return FactRevision.objects.create(
        tenant=fact.tenant, fact=fact, version=version, verb="edit", actor_kind="key", created_at=NOW,
        after={"content": SAID},
    )  # fmt: skip


def test_rows_are_judged_when_their_slice_has_been_read(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose they are takes statements, for which a connection that is still copying would wait for ever."""
    monkeypatch.setattr("memories.privacy.searching.tables.BLOCK_BYTES", 1)
    fact = factories.fact(factories.end_user(person.tenant))
    for version in (2, 3, 4):
        revised(fact, version=version)
    case = erased(person)

    def refuse_amid_copy(execute: Any, *statement: Any) -> Any:
        assert connection.connection.info.transaction_status is not TransactionStatus.ACTIVE
        return execute(*statement)

    with connection.execute_wrapper(refuse_amid_copy):
        assert mentions(case) == {"memories.FactRevision.after": 3}


def test_the_owner_of_a_row_is_looked_up_by_an_index(person: EndUser) -> None:
    revision = revised(factories.fact(person, "Collects stamps"))
    [table] = [table for table in tables.tables()[0] if table.name == FactRevision._meta.db_table]
    ownership = Ownership()
    with CaptureQueriesContext(connection) as sent:
        row = {"id": str(revision.pk).encode(), "fact_id": str(revision.fact_id).encode()}
        assert ownership.owners(table, row) == {person.pk}
    run("SET LOCAL enable_seqscan = off")
    [query] = [query["sql"] for query in sent]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {query}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Cond" in plan, plan


def test_its_reading_leaves_no_row_and_no_transaction(person: EndUser) -> None:
    case = erased(person)
    rows = {model: model._default_manager.count() for model in (Turn, Fact, EndUser, PrivacyCase)}
    verification.verify(case)
    assert rows == {model: model._default_manager.count() for model in rows}
    assert conf.digest("needles") != conf.digest("receipt")
