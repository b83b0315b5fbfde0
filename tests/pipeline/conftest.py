"""What the tests of the pipeline share."""

import pytest
from django.conf import LazySettings

from tests.pipeline.model import Model, install


@pytest.fixture
def model(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Model:
    return install(settings, monkeypatch)
