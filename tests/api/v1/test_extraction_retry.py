"""POST /extractions/{id}/retry."""

import pytest

from memories.models import AuditEvent, SessionQueue
from tests import factories
from tests.api.conftest import Hub


@pytest.mark.usefixtures("with_model")
def test_revives_a_parked_batch(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant))
    SessionQueue.objects.update(parked_at=factories.NOW, due_at=None, failure="model_timeout", attempts=5)
    run = factories.run(session, status="parked")
    assert hub.client.get(f"/sessions/{session.pk}").json()["extraction"]["status"] == "parked"
    answer = hub.client.post(f"/extractions/{run.pk}/retry")
    assert (answer.status_code, answer.json()["extraction"]["status"]) == (202, "pending")
    assert SessionQueue.objects.get().attempts == 0
    assert AuditEvent.objects.get(object_id=run.pk).verb == "retry"


def test_what_is_done_cannot_be_retried(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant))
    SessionQueue.objects.update(extracted_number=1)
    run = factories.run(session)
    answer = hub.client.post(f"/extractions/{run.pk}/retry")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
