"""How long statements may take, and that the time comes back."""

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.backends.signals import connection_created

from memories.db import statement_timeouts
from memories.db.statement_timeouts import unbounded
from memories.models import Tenant
from tests.database import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)


def time() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return str(cursor.fetchone()[0])


def test_it_comes_back() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '7s'")
    try:
        with unbounded():
            assert time() == "0"
        assert time() == "7s"
        with pytest.raises(ValueError, match="ours"), unbounded():
            raise ValueError("ours")
        assert time() == "7s"
    finally:
        connection.close()


def test_a_failed_transaction_tells_its_own_error() -> None:
    with pytest.raises(DatabaseError, match="no_such_table"), transaction.atomic(), unbounded():
        Tenant.objects.raw("SELECT * FROM no_such_table")[0]
    assert time() == "0"


@pytest.mark.usefixtures("least_role")
def test_the_webs_time_is_its_roles_and_a_workers_is_longer() -> None:
    assert elsewhere(time) == "30s"
    before = list(connection_created.receivers)
    statement_timeouts.as_a_worker()
    try:
        assert elsewhere(time) == "10min"
    finally:
        connection_created.receivers[:] = before
        connection_created.sender_receivers_cache.clear()
    assert elsewhere(time) == "30s"
