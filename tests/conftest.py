"""What all tests share."""

import os

import pytest
from xdist.remote import Producer

from tests import sharing


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=5, help="How often make soak shows each fault of a whole hub.")
    parser.addoption(
        "--examples",
        type=int,
        default=None,
        help="Generated calls per operation, way of generating and set of scopes (default: 8, and 2 with one scope).",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return sharing.processes()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> sharing.Sharing:
    return sharing.Sharing(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: sharing.group(item.nodeid))
