"""GET /extractions/{id}."""

from decimal import Decimal

from tests import factories
from tests.api.conftest import Hub


def test_shows_range_outcome_and_costs(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant, external_id="u1"), session_id="s1")
    run = factories.run(
        session,
        extractor="llm:gpt-4o-mini",
        prompt_version="1",
        fed_turns=1,
        outcome={"stored": 2},
        refusals={"about": 1},
        calls=1,
        prompt_tokens=900,
        completion_tokens=80,
        cost=Decimal("0.0012"),
    )
    shown = hub.client.get(f"/extractions/{run.pk}").json()
    assert (shown["user_id"], shown["session_id"], shown["status"]) == ("u1", "s1", "committed")
    assert shown["range"] == {"first": 1, "last": 1, "fed": 1}
    assert (shown["outcome"], shown["refusals"]) == ({"stored": 2}, {"about": 1})
    assert (shown["model"], shown["extractor"], shown["prompt_version"]) == ("gpt-4o-mini", "llm:gpt-4o-mini", "1")
    assert (shown["calls"], shown["tokens"], shown["cost"]) == (1, {"prompt": 900, "completion": 80}, 0.0012)
