"""A tenant with a key for everything, and a client that speaks for it."""

from dataclasses import dataclass
from typing import Any

import pytest
from pytest_django import Settings

from memories.models import APIKey, Tenant
from tests import factories
from tests.api.client import HubClient


@dataclass(frozen=True)
class Hub:
    tenant: Tenant
    key: APIKey
    client: HubClient


def hub_of(tenant: Tenant, **over: Any) -> Hub:
    key, plaintext = factories.api_key(tenant, **over)
    return Hub(tenant=tenant, key=key, client=HubClient(plaintext))


@pytest.fixture
def hub(db: None) -> Hub:
    return hub_of(factories.tenant())


@pytest.fixture
def other(db: None) -> Hub:
    """Another tenant's."""
    return hub_of(factories.tenant())


@pytest.fixture
def client(hub: Hub) -> HubClient:
    return hub.client


@pytest.fixture
def with_model(settings: Settings) -> None:
    """An endpoint is configured, so that turns are armed for extraction; nobody calls it."""
    settings.MEMORYHUB_LLM = "openai"
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
