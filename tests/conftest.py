"""What all tests share."""

from typing import Any

import pytest
from django.conf import LazySettings
from django.db.backends.postgresql.operations import DatabaseOperations

from tests.pipeline.model import Model, install

# They start hubs and browsers, wait for them and judge by the clock: many neighbours at work would make them fail.
ALONE = ("bench", "browser", "e2e", "faults")
# What starts a hub of its own elsewhere.
OWN_HUB = "own_hub"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=5, help="How often make soak shows each fault of a whole hub.")
    parser.addoption(
        "--long", action="store_true", help="Many long lives of tests/stateful instead of a few short ones."
    )
    parser.addoption(
        "--examples",
        type=int,
        default=None,
        help="Generated calls per operation, way of generating and set of scopes (default: 8, and 2 with one scope).",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.split("/")[1] in ALONE or OWN_HUB in getattr(item, "fixturenames", ()):
            item.add_marker("alone")


@pytest.fixture(autouse=True, scope="session")
def emptied_tables() -> Any:
    """Tests with transactions of their own empty all tables, and the audit trail refuses that to everybody.

    Only a superuser may go round its triggers, and the tests' server is theirs.
    """
    plain = DatabaseOperations.execute_sql_flush

    def going_round(self: DatabaseOperations, sql_list: list[str]) -> None:
        plain(self, ["SET LOCAL session_replication_role = replica", *sql_list])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(DatabaseOperations, "execute_sql_flush", going_round)
        yield


@pytest.fixture
def model(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Model:
    """The language model that the hub asks."""
    return install(settings, monkeypatch)
