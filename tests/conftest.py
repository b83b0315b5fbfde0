"""What all tests share."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=5, help="How often make soak shows each fault of a whole hub.")
    parser.addoption(
        "--examples",
        type=int,
        default=None,
        help="Generated calls per operation, way of generating and set of scopes (default: 8, and 2 with one scope).",
    )
