"""What all tests share."""

import gc
import re
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

import httpcore2
import pytest
from _pytest.assertion import rewrite
from django.conf import LazySettings
from django.core.management import call_command
from django.core.management.commands import flush
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection, connections
from django.db.backends.postgresql.operations import DatabaseOperations
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from psycopg._preparing import PrepareManager
from pytest_django import DjangoDbBlocker
from whitenoise.middleware import WhiteNoiseMiddleware
from xdist.scheduler.loadfile import LoadFileScheduling

from memories.db import tenancy
from memories.models import EndUser, Tenant
from tests import factories, migrated
from tests.database import runtime_role
from tests.model import Model, install
from tests.reconcile.reconciling import Extractor
from tests.settings import DISTRIBUTED

Start = Callable[..., "Future[Any]"]
THREADS = 16
# They start hubs and browsers, wait for them and judge by the clock: many neighbours at work would make them fail.
ALONE = ("benchmarks", "browser", "e2e", "faults")
# What starts a hub of its own elsewhere.
OWN_HUB = "own_hub"
# The folders in which `make test` looks for what is alone.
MAKEFILE = (Path(__file__).parent.parent / "Makefile").read_text(encoding="utf-8")
SEARCHED = re.findall(r"^ALONE = (.*)$", MAKEFILE, re.MULTILINE)[0].split()
# Begun first. A file of these takes half a minute or more with few tests: begun last, it would be waited for alone.
LONG = (
    "tests/redteam/test_redteam.py",
    "tests/admin/test_matrix.py",
    "tests/redteam/test_blind_rounds.py",
    "tests/redteam/test_through_mcp.py",
    "tests/redteam/test_through_gateway.py",
    "tests/reconcile/test_slips_committed.py",
    "tests/models/test_migrations.py",
    "tests/stateful/test_planted.py",
    "tests/stateful/test_life.py",
    "tests/api/test_written_texts.py",
    "tests/commands/test_restore_of_old.py",
    "tests/privacy/test_rounds.py",
    "tests/faults/test_wedged.py",
    "tests/browser/test_pages.py",
    "tests/faults/test_worker_killed.py",
    "tests/commands/test_up.py",
    "tests/e2e/test_readme.py",
    "tests/faults/test_lives_killed.py",
    "tests/benchmarks/test_bench.py",
    "tests/faults/test_whole_hub.py",
    "tests/commands/test_worker.py",
    "tests/e2e/test_package.py",
    "tests/commands/test_point_in_time.py",
    "tests/faults/test_window_killed.py",
    "tests/commands/test_embedder.py",
    "tests/commands/test_slow_clients.py",
    "tests/browser/test_review_queue.py",
)
# Of these each test is given out by itself: they are few and long, and each sets up all that it needs.
EACH = ("tests/browser/test_pages.py", "tests/faults/test_wedged.py", "tests/faults/test_worker_killed.py")
# What names the parent of a row that has its tenant.
MADE_BY_DJANGO = ("django_content_type", "auth_permission")
# Command tags after which tables are others, and after which psycopg forgets what it prepared wherever it stands.
MAKES_TABLES = (b"CREATE", b"ALTER", b"DROP")
FORGETS = (b"ALTER", b"DROP", b"DISCARD ALL", b"DEALLOCATE ALL")
# Tests of one process have more statements than a worker or a view; psycopg keeps 100.
PREPARED_AT_MOST = 1_000
# New objects between two garbage collections. With Python's 700 the tests' processes need 4 % more of the processor.
GARBAGE_AT_ONCE = 50_000
# A busy machine is no fault of what is tested.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
# Hypothesis reads modules for constants to draw: that took seconds, and what is drawn hung on what else was loaded.
providers._get_local_constants = lambda: providers._local_constants


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rounds",
        type=int,
        default=None,
        help="How often make faults shows each fault (default: 5), or somebody is erased amid everything (default: 2).",
    )
    parser.addoption(
        "--long", action="store_true", help="Many long lives of tests/stateful instead of a few short ones."
    )
    parser.addoption(
        "--examples",
        type=int,
        default=None,
        help="Generated calls per operation and way of generating (default: 3).",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What collecting makes stays to the end: the garbage collector need not go through it again and again."""
    gc.disable()
    _rewrite_share(session.config)
    collected = yield
    gc.freeze()
    gc.set_threshold(GARBAGE_AT_ONCE)
    gc.enable()
    return collected


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.split("/")[1] in ALONE or OWN_HUB in getattr(item, "fixturenames", ()):
            item.add_marker("alone")
        if item.get_closest_marker("alone") and item.nodeid.split("/")[1] not in SEARCHED:
            raise pytest.UsageError(f"{item.nodeid}: make test needs its folder in ALONE of the Makefile")
    tests = Counter(map(_file, items))
    begun = {file: place for place, file in enumerate(LONG)}
    items.sort(key=lambda item: (begun.get(_file(item), len(LONG)), -tests[_file(item)]))


def _rewrite_share(config: pytest.Config) -> None:
    """In a fresh clone each process would rewrite the asserts of all tests, at the same time as the others: a third of
    what collecting takes. Each does so for its share, which the others then find."""
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    if not worker or sys.dont_write_bytecode:
        return
    places = [config.invocation_params.dir / given.partition("::")[0] for given in config.args]
    files = sorted({path for place in places for path in ([place] if place.is_file() else place.rglob("test_*.py"))})
    for path in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        written = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
        if rewrite._read_pyc(path, written) is None and rewrite.try_makedirs(written.parent):
            source, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source, written)


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # which has no types
    """A process gets the tests of a file, so that they share its set-up; those of EACH share nothing."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return nodeid if file in EACH else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> Iterator[None]:
    with nullcontext() if DISTRIBUTED else migrated.copied():
        yield


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """On a cluster the tables are distributed after they were migrated."""
    if not DISTRIBUTED:
        return
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_dist_partition LIMIT 1")
        if cursor.fetchone() is None:
            call_command("distribute")


@pytest.fixture(autouse=True, scope="session")
def emptied_tables() -> Iterator[None]:
    """Tests with transactions of their own empty all tables by DELETE: it takes a fifth of the time of TRUNCATE.

    The audit trail refuses that to everybody, and foreign keys want an order. Only a superuser may go round both, and
    the tests' server is theirs. Django would make its types and permissions anew each time, which takes longer than the
    rest: they stay unless the test changed them.
    """
    plain = DatabaseOperations.execute_sql_flush
    made, stays = "", False

    def deletes(self: DatabaseOperations, _style: Any, tables: list[str], **_options: Any) -> list[str]:
        nonlocal stays
        stays = made == _types_and_permissions()
        emptied = [table for table in tables if not (stays and table in MADE_BY_DJANGO)]
        # A cluster tells its nodes the setting, with all that stands in the same string.
        return ["SET LOCAL session_replication_role = replica", *(f"DELETE FROM {self.quote_name(t)}" for t in emptied)]

    def at_once(self: DatabaseOperations, sql_list: list[str]) -> None:
        setting, *deletions = sql_list
        plain(self, [setting, "; ".join(deletions)])

    def make(*args: Any, **options: Any) -> None:
        nonlocal made
        if not stays:
            emit_post_migrate_signal(*args, **options)
            made = _types_and_permissions()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(DatabaseOperations, "sql_flush", deletes)
        patched.setattr(DatabaseOperations, "execute_sql_flush", at_once)
        patched.setattr(flush, "emit_post_migrate_signal", make)
        yield


def _types_and_permissions() -> str:
    with connection.cursor() as cursor:
        rows = " || ".join(f"(SELECT string_agg(t::text, '' ORDER BY id) FROM {table} t)" for table in MADE_BY_DJANGO)
        cursor.execute(f"SELECT md5({rows})")
        return str(cursor.fetchone()[0])


@pytest.fixture(autouse=True, scope="session")
def static_files_looked_up_once() -> Iterator[None]:
    """Each client of a test has middleware of its own, and that of the static files looks up all of them: 9 ms."""
    plain, known = WhiteNoiseMiddleware.add_files_from_finders, dict[str, Any]()

    def add(self: WhiteNoiseMiddleware) -> None:
        if not known:
            plain(self)
            known.update(self.files)
        self.files.update(known)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(WhiteNoiseMiddleware, "add_files_from_finders", add)
        yield


@pytest.fixture(autouse=True, scope="session")
def certificates_read_once() -> Iterator[None]:
    """Each client of httpx2 reads those of the system anew, also one for http://127.0.0.1: 20 ms."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(httpcore2, "default_ssl_context", cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture(autouse=True, scope="session")
def statements_stay_prepared() -> Iterator[None]:
    """After a ROLLBACK, which ends most tests, psycopg forgets what it prepared, and the server plans all of it anew.

    It has to where tables came or went since, and there it still does.
    """
    clear, remade = PrepareManager.clear, WeakSet[PrepareManager]()

    def discards(self: PrepareManager, _prep: Any, results: Any) -> bool:
        tags = [result.command_status or b"" for result in results]
        if any(tag.startswith(MAKES_TABLES) for tag in tags):
            remade.add(self)
        forgets = (*FORGETS, b"ROLLBACK") if self in remade else FORGETS
        return any(tag.startswith(forgets) for tag in tags) and clear(self)

    def clear_at_end(self: PrepareManager) -> bool:
        """Of a transaction that is rolled back."""
        was_remade = self in remade
        remade.discard(self)
        return was_remade and clear(self)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PrepareManager, "_should_discard", discards)
        patched.setattr(PrepareManager, "clear", clear_at_end)
        patched.setattr(PrepareManager, "prepared_max", PREPARED_AT_MOST)
        yield


@pytest.fixture(autouse=True)
def tenancy_of_its_own() -> Iterator[None]:
    """What a test authenticates outside a request does not bound the statements of the next test."""
    with tenancy.within(tenancy._UNSAID):
        yield


@pytest.fixture
def least_role(transactional_db: None) -> Iterator[None]:
    """The test works as web and worker do, in all of its threads: as the role that may read and write rows alone.

    Behind row level security it reaches what the worker does, where nobody has said how far.
    """
    given = {name: connection.settings_dict[name] for name in ("USER", "PASSWORD")}
    user, password = runtime_role()
    connections.close_all()
    # Of all threads: the one dictionary of the alias.
    connection.settings_dict.update(USER=user, PASSWORD=password)
    with pytest.MonkeyPatch.context() as patched:
        # Ends before the tables are emptied, by their owner.
        patched.setattr(tenancy, "_of_process", tenancy.EVERYTHING)
        yield
    connections.close_all()
    connection.settings_dict.update(given)


@pytest.fixture
def model(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Model:
    """The language model that the hub asks."""
    return install(settings, monkeypatch)


@pytest.fixture
def tenant(db: None) -> Tenant:
    return factories.tenant()


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user()


@pytest.fixture
def start() -> Iterator[Start]:
    """Run a function in another thread, with its own connection."""

    def own_connection(function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(THREADS) as pool:
        yield lambda function, *args: pool.submit(own_connection, function, *args)


@pytest.fixture
def extract(model: Model, person: EndUser) -> Extractor:
    return Extractor(model, person)
