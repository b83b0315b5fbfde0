"""An outage of the model's endpoint in the admin: a banner where work waits, a red tile, and what a retry says."""

import pytest
from django.test import Client
from django.urls import reverse

from memories.models import ExtractionRun, Session
from memories.queue import circuit_breaker
from tests import factories
from tests.admin.pages import list_of, page_of, text_of
from tests.admin.test_runs import parked, session
from tests.queue.test_own_endpoints import open_circuit

__all__ = ["parked", "session"]

pytestmark = pytest.mark.django_db
OUT = "The model endpoint does not answer."


def pages(run: ExtractionRun) -> list[str]:
    lists = [list_of(Session), list_of(ExtractionRun), reverse("admin:parked"), reverse("admin:index")]
    return [*lists, page_of(run), page_of(run.session), reverse("admin:figures")]


def test_the_pages_of_waiting_work_say_that_the_model_is_out(admin: Client, parked: ExtractionRun) -> None:
    assert [address for address in pages(parked) if OUT in text_of(admin.get(address))] == []
    open_circuit(None)
    for address in pages(parked):
        page = text_of(admin.get(address))
        for said in (OUT, "First failure:", "Nothing is lost: 1 session waits", "Next try:"):
            assert said in page, address
    circuit_breaker.close()
    assert OUT not in text_of(admin.get(list_of(Session)))


def test_the_tile_of_the_queue_turns_red(admin: Client, parked: ExtractionRun) -> None:
    red = '<span class="hub-warn">the model does not answer</span>'
    assert red not in text_of(admin.get(reverse("admin:index")))
    open_circuit(None)
    assert red in text_of(admin.get(reverse("admin:index")))


@pytest.mark.parametrize("is_out", [True, False])
def test_a_retry_says_when_the_batch_is_taken(admin: Client, parked: ExtractionRun, is_out: bool) -> None:
    if is_out:
        open_circuit(None)
    said = text_of(admin.post(page_of(parked, "retry"), follow=True))
    assert ("The model endpoint does not answer: it is asked again" in said) is is_out
    assert ("A worker takes it within two seconds." in said) is not is_out


def test_the_outage_of_another_tenants_endpoint_is_not_this_ones(admin: Client, parked: ExtractionRun) -> None:
    open_circuit(factories.tenant().pk)
    assert "does not answer" not in text_of(admin.get(page_of(parked)))
    assert "does not answer" in text_of(admin.get(list_of(Session)))
