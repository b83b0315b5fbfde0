"""What the tests of the pipeline share."""

import pytest
from django.conf import LazySettings

from memories.models import EndUser
from tests import factories
from tests.pipeline.model import Model, install
from tests.pipeline.reconciling import Extractor


@pytest.fixture
def model(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Model:
    return install(settings, monkeypatch)


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user()


@pytest.fixture
def extract(model: Model, person: EndUser) -> Extractor:
    return Extractor(model, person)
