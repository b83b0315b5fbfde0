"""Every store can count, give out, erase and be looked at; and the database holds no samples of what is in it."""

import json
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.db.models import Model

from memories.models import EndUser, PrivacyCase, Tenant
from memories.privacy import erasing, registry
from memories.privacy.stores import readers as stores_of_readers
from memories.privacy.stores.store import PersonalDataStore
from memories.privacy.stores.unlinked import Traces
from tests import factories
from tests.factories import NOW
from tests.privacy.erased_world import known, somebody, told_to_another

BY_LABEL = {store.model: store for store in registry.all_stores()}
# Of these the row stays, without what it said.
EMPTIED = ("memories.PrivacyCase", "memories.IdempotencyRecord", "memories.Fact.allowed_users")


@pytest.fixture
def owner(db: None) -> Tenant:
    return factories.tenant()


@pytest.fixture
def person(owner: Tenant) -> EndUser:
    found = somebody(owner, "anneke-7")
    known(factories.end_user(owner), "Told to two", allowed_users=["anneke-7", "else"])
    told_to_another(found)
    return found


def test_every_store_is_there_once() -> None:
    assert len(BY_LABEL) == len(registry.all_stores())


PERSON = "memories.EndUser"
IN_TABLES = [label for label in BY_LABEL if label != "files"]


@pytest.mark.django_db
def test_every_store_counts_and_gives_out(person: EndUser) -> None:
    nobody = factories.end_user(person.tenant)
    for label in IN_TABLES:
        store = BY_LABEL[label]
        rows = list(store.export_rows(person))
        assert len(rows) == store.count(person) > 0, label
        assert json.loads(json.dumps(rows)) == rows, label
        for name in store.fields if label.count(".") == 1 and isinstance(store, registry.Store) else ():
            assert _column(label, name) in rows[0], name
        # A file that waits can be of anybody.
        is_of_all = label in (PERSON, "memories.Import", "memories.ImportPiece")
        assert is_of_all or not list(store.export_rows(nobody)), label


@pytest.mark.django_db
def test_every_store_erases_and_is_looked_at(person: EndUser) -> None:
    for label in IN_TABLES:
        assert BY_LABEL[label].verify(person) > 0, label
    for label in IN_TABLES:
        store = BY_LABEL[label]
        with transaction.atomic():
            _erase_all(store, person)
            assert store.verify(person) == 0, label
            assert store.count(person) == 0 or label in EMPTIED, label
            # The others count on the person's row and the names that lead to it.
            transaction.set_rollback(label == PERSON)
    assert set(registry.counts(factories.end_user(person.tenant)).values()) <= {0, 1}


@pytest.mark.django_db
def test_no_store_takes_more_than_it_is_told_to(person: EndUser) -> None:
    # As an erasure begins: then no row goes with the last one that names it, and each is counted.
    EndUser.objects.filter(pk=person.pk).update(restricted_at=NOW)
    # The person and the names that lead to them go together.
    for label in [one for one in IN_TABLES if one != PERSON]:
        # The connection checks its foreign keys at the end alone.
        assert BY_LABEL[label].erase(person, 1) == 1, label
        _erase_all(BY_LABEL[label], person)


@pytest.mark.django_db
def test_files_of_the_person_and_their_cases_go(person: EndUser, settings: Any, tmp_path: Any) -> None:
    settings.HOME = tmp_path
    folder = tmp_path / "exports"
    folder.mkdir()
    case = PrivacyCase.objects.filter(end_user=person)[0]
    for name in (f"{case.pk}.zip", f"{person.pk}.json", "others.zip"):
        (folder / name).write_bytes(b"PK")
    store = BY_LABEL["files"]
    assert (store.count(person), len(list(store.export_rows(person)))) == (2, 2)
    assert store.erase(person) == 2
    assert [path.name for path in folder.iterdir()] == ["others.zip"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("value", "leads"),
    [
        (["anneke-7"], True),
        ({"said": {"by": ("Display anneke-7",)}}, True),
        ("see anneke-7, please", True),
        (b"/users/anneke-7/turns", True),
        ("hanneke-77", False),
        ("somebody else", False),
        (12, False),
    ],
)
def test_traces_are_found_however_they_are_wrapped(owner: Tenant, value: Any, leads: bool) -> None:
    person = factories.end_user(owner, external_id="anneke-7", display_name="Display anneke-7")
    assert Traces(person).are_in(value) is leads
    assert Traces(person).are_in([str(person.pk)])
    assert Traces(person).are_in(person.pk.hex)


@pytest.mark.django_db
def test_a_short_name_counts_as_a_whole_alone(owner: Tenant) -> None:
    person = factories.end_user(owner, external_id="task")
    assert Traces(person).are_in(["Task"])
    assert not Traces(person).are_in("memories.tasks.forget the task")


@pytest.mark.django_db
class TestStatistics:
    def test_the_planner_keeps_no_samples_of_any_personal_column(self) -> None:
        assert _personal() - _unsampled() == set()
        assert len(_personal()) > 60

    def test_the_look_sees_a_column_that_is_sampled(self) -> None:
        assert ("memories_turn", "created_at") not in _unsampled()

    def test_old_samples_of_such_a_column_go(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT tablename, attname FROM pg_stats WHERE schemaname = current_schema()")
            assert {(table, column) for table, column in cursor.fetchall()} & _personal() == set()

    def test_analyze_samples_no_words(self) -> None:
        factories.session(factories.end_user(), [("user", f"I live in Leiden ({n})") for n in range(30)])
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("ANALYZE memories_turn")
            assert not sampled("content")
            assert sampled("role")
            assert sampled("created_at")
            # Without the migration it would be.
            cursor.execute("ALTER TABLE memories_turn ALTER COLUMN content SET STATISTICS 100")
            cursor.execute("ANALYZE memories_turn")
        assert sampled("content")


def sampled(column: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_stats WHERE tablename = 'memories_turn' AND attname = %s", [column])
        return cursor.fetchone() is not None


def test_every_foreign_key_to_what_is_erased_has_an_index(db: None) -> None:
    """Else each row that goes reads all of the table that refers to it."""
    tables = {apps.get_model(store.model)._meta.db_table for store in registry.STORES}
    with connection.cursor() as cursor:
        cursor.execute(_UNINDEXED, [sorted(tables)])
        assert cursor.fetchall() == []
        cursor.execute("DROP INDEX review_of_end_user_idx")
        cursor.execute(_UNINDEXED, [sorted(tables)])
        assert cursor.fetchall() == [("memories_reviewitem", "end_user_id")]
        transaction.set_rollback(True)


@pytest.mark.django_db
def test_in_a_transaction_nothing_is_vacuumed() -> None:
    assert not erasing.vacuum("memories_turn")
    assert erasing.tables_changed(
        {"memories.Turn": 3, "memories.Fact": 0, "files": 2, "memories.Fact.allowed_users": 1}
    ) == ["memories_turn"]


_READERS = ("fact_readers_idx", "revision_readers_idx")
# Foreign keys whose column no index begins with; in those by (tenant, id) it is the last one.
_UNINDEXED = """
    SELECT DISTINCT conrelid::regclass::text, attname FROM pg_constraint
    JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[cardinality(conkey)]
    WHERE contype = 'f' AND confrelid::regclass::text = ANY(%s)
        AND NOT EXISTS (SELECT 1 FROM pg_index WHERE indrelid = conrelid AND indkey[0] = attnum)
"""


def _erase_all(store: PersonalDataStore, person: EndUser) -> None:
    while store.erase(person, 100):
        """Until nothing is left."""


def _column(label: str, name: str) -> str:
    model: type[Model] = apps.get_model(label)
    return str(model._meta.get_field(name).attname)  # type: ignore[union-attr]


def _personal() -> set[tuple[str, str]]:
    found = set()
    for store in registry.all_stores():
        if store.model.count(".") == 1:
            model: Any = apps.get_model(store.model)
            found |= {(model._meta.db_table, model._meta.get_field(name).column) for name in store.fields}
    return found


def _unsampled() -> set[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT attrelid::regclass::text, attname FROM pg_attribute WHERE attstattarget = 0")
        return {(table, column) for table, column in cursor.fetchall()}


@pytest.mark.django_db
def test_facts_that_name_their_readers_are_found_by_their_indexes(person: EndUser) -> None:
    """Few facts name any: nobody reads all facts and their history for it."""
    with connection.cursor() as cursor:
        # So few rows are read in any other way else.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_indexscan = off")
        for half, index in zip(stores_of_readers._NAMING.split("UNION"), _READERS, strict=True):
            # The tenant's own index would do for so few rows.
            query = half.replace("tenant_id = %(tenant)s AND ", "")
            cursor.execute(f"EXPLAIN {query}", {"names": ["anneke-7"]})
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert index in plan, plan
