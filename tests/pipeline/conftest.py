"""What the tests of the pipeline share."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from memories.models import EndUser
from tests import factories
from tests.pipeline.model import Model
from tests.pipeline.reconciling import Extractor

Start = Callable[..., "Future[Any]"]
THREADS = 16


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
