"""What models cost: runs of extraction have their own, summaries and upkeep add to the tenant's day."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.conf import LazySettings

from memories.episodes import compaction
from memories.exceptions import ModelUnavailable
from memories.extraction import consolidation
from memories.models import EndUser, ModelUse, Session, WorkingMemory
from memories.queue import spending
from memories.queue.spending import Spent
from tests import factories
from tests.database import at_once
from tests.factories import NOW
from tests.model import Model

PRICES = (Decimal(2), Decimal(10))
# Of one answer of the scripted model: 70 tokens read, 7 written.
ONE_ANSWER = Decimal("0.000210")
Purpose = ModelUse.Purpose


def full(person: EndUser) -> Session:
    """A session whose window is due."""
    said = [(role, f"{role} {number}") for number in range(12) for role in ("user", "assistant")]
    session = factories.session(person, said)
    WorkingMemory.objects.filter(pk=session.pk).update(due_at=NOW - timedelta(days=365))
    return session


def used() -> list[tuple[str, int, int, int, Decimal | None]]:
    return list(ModelUse.objects.values_list("purpose", "calls", "prompt_tokens", "completion_tokens", "cost"))


@pytest.mark.django_db
def test_a_run_costs_what_its_tokens_cost(model: Model, person: EndUser, settings: LazySettings) -> None:
    settings.MEMORYHUB_LLM_PRICES = PRICES
    run = consolidation.consolidate(session_id=factories.session(person, flush=True).pk, now=NOW)
    assert run
    assert run.cost == ONE_ANSWER


@pytest.mark.django_db
def test_without_prices_costs_are_not_known(model: Model, person: EndUser) -> None:
    run = consolidation.consolidate(session_id=factories.session(person, flush=True).pk, now=NOW)
    assert run
    assert (run.prompt_tokens, run.cost) == (70, None)
    spending.note(person.tenant, Purpose.UPKEEP, calls=1, spent=Spent(5, 6), prices=None, now=NOW)
    assert used() == [("upkeep", 1, 5, 6, None)]


@pytest.mark.django_db
def test_summaries_are_added_to_the_day(model: Model, person: EndUser, settings: LazySettings) -> None:
    settings.MEMORYHUB_LLM_PRICES = PRICES
    for _ in range(2):
        assert compaction.compact(session_id=full(person).pk, now=NOW)
    [(purpose, calls, read, written, cost)] = used()
    assert (purpose, read, written, cost) == ("summaries", 70 * calls, 7 * calls, ONE_ANSWER * calls)
    assert calls == len(model.prompts) > 2


@pytest.mark.django_db
def test_a_failed_attempt_is_counted_too(model: Model, person: EndUser) -> None:
    model.sessions.append(ModelUnavailable())
    assert not compaction.compact(session_id=full(person).pk, now=NOW)
    assert used() == [("summaries", 1, 0, 0, None)]


@pytest.mark.django_db
def test_no_call_leaves_no_row(person: EndUser) -> None:
    spending.note(person.tenant, Purpose.SUMMARIES, calls=0, spent=Spent(), prices=None, now=NOW)
    assert used() == []


@pytest.mark.django_db(transaction=True)
def test_two_at_once_are_both_counted(person: EndUser) -> None:
    def note(_: int) -> None:
        spending.note(person.tenant, Purpose.SUMMARIES, calls=1, spent=Spent(3, 4), prices=None, now=NOW)

    at_once(4, note)
    assert used() == [("summaries", 4, 12, 16, None)]
