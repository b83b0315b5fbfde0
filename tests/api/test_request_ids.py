"""X-Request-ID: on every answer, the caller's own when it is sane."""

from django.test import Client

from memories.audit import kept_request_id
from memories.models import AuditEvent
from tests import factories
from tests.api.conftest import Hub


def test_the_callers_id_comes_back_where_it_is_sane(hub: Hub) -> None:
    for given in ("abc", "7f3e-1:2.x_y", "a" * 64):
        answer = hub.client.call("GET", "/users", headers={"X-Request-ID": given})
        assert answer.headers["X-Request-ID"] == given
        refused = hub.client.call("GET", "/sessions", headers={"X-Request-ID": given})
        assert (refused.status_code, refused.json()["request_id"]) == (400, given)
    for given in ("", " ", "a" * 65, "a b", "id\r\nSet-Cookie: x=1", "<script>", "用户", "-x"):
        answer = hub.client.call("GET", "/users", headers={"X-Request-ID": given.encode().decode("latin-1")})
        assert len(answer.headers["X-Request-ID"]) == 32, given


def test_every_answer_has_one(db: None) -> None:
    for path in ("/healthz", "/api/v1/nowhere", "/nowhere", "/api/schema/", "/"):
        first, second = (Client().get(path).headers["X-Request-ID"] for _ in range(2))
        assert first != second, path


def test_the_trail_names_nobody_by_them(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="anna-7")
    made = factories.fact(person)
    answer = hub.client.call("DELETE", f"/facts/{made.pk}", headers={"X-Request-ID": "anna-7:1"})
    assert (answer.status_code, answer.headers["X-Request-ID"]) == (204, "anna-7:1")
    event = AuditEvent.objects.get(object_id=made.pk)
    assert event.request_id == kept_request_id("anna-7:1")
    assert "anna" not in str(event.__dict__)
