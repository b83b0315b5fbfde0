"""The client of a tenant, as for tests of the API."""

from tests.api.conftest import client, hub

__all__ = ["client", "hub"]
