"""A person's record."""

from datetime import timedelta
from typing import Any

import pytest

from memories import curation
from memories.audit import Actor
from memories.exceptions import PersonRestricted
from memories.models import ActorKind, AuditEvent, EndUser
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(days=1)
KEY = Actor(kind=ActorKind.KEY, id="4f1b", request_id="r-1")
STAFF = Actor(kind=ActorKind.OPERATOR, id="7", request_id="r-2")


@pytest.fixture
def person() -> EndUser:
    return factories.end_user()


def events() -> list[tuple[str, str, str]]:
    """Verb, kind of object and kind of actor of each event, oldest first."""
    return list(AuditEvent.objects.order_by("id").values_list("verb", "object_type", "actor_kind"))


class TestPerson:
    def update(self, person: EndUser, *, actor: Actor = KEY, **changes: Any) -> EndUser:
        return curation.update_person(end_user=person, changes=changes, actor=actor, now=LATER)

    def test_named_fields_change_and_no_others(self, person: EndUser) -> None:
        changes: dict[str, Any] = {
            "display_name": "安娜",
            "time_zone": "Asia/Shanghai",
            "language": "zh-CN",
            "metadata": {"plan": ["pro"]},
            "capture": False,
            "serve": False,
        }
        before = EndUser.objects.values().get()
        self.update(person, **changes)
        assert EndUser.objects.values().get() == {**before, **changes}

    def test_it_leaves_an_event_without_content(self, person: EndUser) -> None:
        self.update(person, display_name="Anna Secret")
        event = AuditEvent.objects.get()
        assert (event.verb, event.object_type, event.object_id) == ("update", "EndUser", person.pk)
        assert (event.actor_kind, event.request_id, event.tenant_uuid) == ("key", "r-1", person.tenant_id)
        assert "Secret" not in str(vars(event))

    def test_a_stale_copy_does_not_bring_old_values_back(self, person: EndUser) -> None:
        EndUser.objects.update(language="zh-CN", generation=5)
        self.update(person, display_name="Anna")
        row = EndUser.objects.get()
        assert (row.language, row.generation, row.display_name) == ("zh-CN", 5, "Anna")

    def test_restricted_people_are_out_of_reach_for_keys(self, person: EndUser) -> None:
        EndUser.objects.update(restricted_at=NOW)
        with pytest.raises(PersonRestricted):
            self.update(person, display_name="Anna")
        assert (EndUser.objects.get().display_name, events()) == ("", [])
        self.update(person, actor=STAFF, display_name="Anna")
        assert EndUser.objects.get().display_name == "Anna"
