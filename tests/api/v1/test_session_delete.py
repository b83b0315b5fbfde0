"""DELETE /sessions/{id}."""

import pytest

from memories.models import AuditEvent, Fact, Session, Turn
from tests import factories
from tests.api.conftest import Hub


def test_the_session_and_what_rests_on_it_are_gone(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="小明")
    session, other = factories.session(person), factories.session(person)
    alone, both = factories.fact(person), factories.fact(person, "Drinks tea")
    for fact, talk in ((alone, session), (both, session), (both, other)):
        factories.evidence(fact, talk.turns.get())
    answer = hub.client.call("DELETE", f"/sessions/{session.pk}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (list(Session.objects.all()), list(Fact.objects.all()), Turn.objects.count()) == ([other], [both], 1)
    assert hub.client.get(f"/sessions/{session.pk}").status_code == 404
    assert hub.client.get(f"/facts/{alone.pk}").status_code == 404
    assert [one["session_id"] for one in hub.client.get(f"/facts/{both.pk}").json()["evidence"]] == [other.external_id]
    event = AuditEvent.objects.get(object_id=session.pk)
    assert (event.actor_id, event.counts) == (str(hub.key.pk), {"turns": 1, "facts": 1})


def test_once_deleted_it_is_not_found(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant))
    assert [hub.client.call("DELETE", f"/sessions/{session.pk}").status_code for _ in range(2)] == [204, 404]


@pytest.mark.usefixtures("with_model")
def test_a_session_of_that_name_begins_anew(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant, external_id="u1"), session_id="s1")
    hub.client.call("DELETE", f"/sessions/{session.pk}")
    body = {"user_id": "u1", "session_id": "s1", "messages": [{"role": "user", "content": "Hello again"}]}
    receipt = hub.client.post("/turns", body).json()
    assert (receipt["turns"][0]["number"], receipt["session"]["turn_count"]) == (1, 1)
    assert receipt["session"]["id"] != str(session.pk)
