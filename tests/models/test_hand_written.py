"""Rows that are read by hand are those that Django reads."""

import pytest
from django.db import models

from memories.embedding import spaces
from memories.models import APIKey, EmbeddingSpace, EndUser, Session, SessionQueue, Tenant
from memories.models.hand_written import columns_of, condition, first, parameter, read, selected
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def phrases() -> dict[str, list[str]]:
    return {"goal": ["our target is … this year", "我们的目标"]}


@pytest.mark.parametrize("model", [APIKey, EmbeddingSpace, EndUser, Session, SessionQueue, Tenant])
def test_each_value_is_the_same(model: type[models.Model], phrases: dict[str, list[str]]) -> None:
    tenant = factories.tenant(
        signal_phrases=phrases, debounce_seconds=7, half_life_days=90.5, half_lives={"goal": None}
    )
    factories.api_key(tenant)
    factories.session(factories.end_user(tenant, metadata={"of": [1, None]}))
    spaces.first_space()
    names, table = columns_of(model), model._meta.db_table
    row = first(f"SELECT {selected('t', names)}, 'what follows' FROM {table} t")
    assert row
    values = iter(row)
    made, stored = read(model, names, values), model._default_manager.get()
    assert [_plain(getattr(made, name)) for name in names] == [_plain(getattr(stored, name)) for name in names]
    assert next(values) == "what follows"
    made.save()


def test_what_was_not_read_is_read_when_asked_for(phrases: dict[str, list[str]]) -> None:
    factories.tenant(slug="acme", signal_phrases=phrases)
    row = first("SELECT t.id, t.slug FROM memories_tenant t WHERE t.slug = %(slug)s", {"slug": "acme"})
    assert row
    made = read(Tenant, ("id", "slug"), row)
    assert made.get_deferred_fields() >= {"signal_phrases", "capture"}
    assert (made.slug, made.signal_phrases, made.capture) == ("acme", phrases, True)


def test_no_row_is_none() -> None:
    assert first("SELECT 1 WHERE false") is None


def _plain(value: object) -> object:
    return bytes(value) if isinstance(value, memoryview) else value


def test_a_condition_is_written_once_with_constants_and_named_parameters() -> None:
    rule = models.Q(agent_id__in=["50% 'off'", parameter("agent")], end_user=parameter("person"))
    written = condition(Session, rule, alias="s")
    assert written == """((s."agent_id" IN ('50%% ''off''', %(agent)s) AND s."end_user_id" = (%(person)s)))"""
    session = factories.session(factories.end_user(), agent_id="planner")
    statement = f"SELECT s.id FROM memories_session s WHERE {written}"
    assert first(statement, {"agent": "planner", "person": session.end_user_id}) == (session.pk,)
    assert first(statement, {"agent": "another", "person": session.end_user_id}) is None
    assert condition(Session, models.Q()) == "true"


def test_a_condition_that_needs_another_table_is_refused() -> None:
    with pytest.raises(ValueError, match="memories_enduser"):
        condition(Session, models.Q(end_user__external_id="u1"))
