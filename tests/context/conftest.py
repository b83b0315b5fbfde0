"""Whom the contexts are for."""

import pytest

from memories.models import EndUser
from tests import factories


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(external_id="u1")
