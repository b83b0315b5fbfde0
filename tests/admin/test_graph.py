"""The graph in the admin: the drawing of a person's graph on a day, entities, and the day of lists and pages."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from memories.models import AuditEvent, ChangeSet, EndUser, GraphEntity, GraphTriple
from tests import factories
from tests.admin.pages import HOSTILE, list_of, page_of, text_of

LIBRARY = settings.FOLDERS / "static" / "cytoscape" / "cytoscape.min.js"
DECISION = settings.FOLDERS / "docs" / "decisions" / "0019-cytoscape-draws-the-graph.md"


def on(year: int, month: int = 1, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(factories.tenant(slug="acme-prod"), external_id="usr_1000", display_name="华桂珍")


@pytest.fixture
def moved(person: EndUser) -> list[GraphTriple]:
    """Lived in Leiden until June 2024, and since then in Utrecht."""
    return [
        factories.triple(person, "user", "home_city", "Leiden", valid_from=on(2020), valid_to=on(2024, 6)),
        factories.triple(person, "user", "home_city", "Utrecht", valid_from=on(2024, 6)),
    ]


def drawing_of(person: EndUser) -> str:
    return reverse("admin:memories_enduser_graph_drawing", args=[person.pk])


def graph_of(person: EndUser) -> str:
    return reverse("admin:memories_enduser_graph", args=[person.pk])


def test_the_list_shows_what_held_on_the_day(admin: Client, person: EndUser, moved: list[GraphTriple]) -> None:
    pages = [text_of(admin.get(graph_of(person), {"as_of": day})) for day in ("2024-05-31", "2024-06-01", "2019-12-31")]
    found = [[one for one in ("Leiden", "Utrecht") if f"home city · {one}" in page] for page in pages]
    # What ends on a day does not hold on it.
    assert found == [["Leiden"], ["Utrecht"], []]
    part = text_of(admin.get(graph_of(person), {"as_of": "2024-05-31"}, headers={"X-Fragment": "holds"}))
    assert "home city · Leiden" in part
    assert "<html" not in part


def test_a_day_that_cannot_be_read_is_today(admin: Client, person: EndUser, moved: list[GraphTriple]) -> None:
    for day in ("", "yesterday", "2024-02-30", "0001-01-01", "9999-12-31", "\x00"):
        answers = [admin.get(page, {"as_of": day, "focus": day}) for page in (graph_of(person), drawing_of(person))]
        assert [answer.status_code for answer in answers] == [200, 200], day
        page = text_of(admin.get(graph_of(person), {"as_of": day}, headers={"X-Fragment": "holds"}))
        assert ("home city · Utrecht" in page, "home city · Leiden" in page) == (True, False), day
    assert admin.get(page_of(moved[0]), {"as_of": "yesterday"}).status_code == 200


def test_the_drawing_has_entities_and_triples_with_their_days(
    admin: Client, person: EndUser, moved: list[GraphTriple]
) -> None:
    waits = factories.triple(person, "Max", "knows", "user", status="pending", valid_from=None)
    factories.triple(person, "Max", "knows", "Bob", status="trashed")
    factories.triple(factories.end_user(person.tenant), "user", "knows", "Somebody")
    told = admin.get(drawing_of(person)).json()
    names = {one["id"]: one["name"] for one in told["entities"]}
    assert sorted(names.values()) == ["Leiden", "Max", "Utrecht", "华桂珍"]
    assert [one["name"] for one in told["entities"] if one["is_person"]] == ["华桂珍"]
    lines = {one["id"]: (names[one["object"]], one["from"], one["until"], one["waits"]) for one in told["triples"]}
    assert lines == {
        str(moved[0].pk): ("Leiden", "2020-01-01", "2024-06-01", False),
        str(moved[1].pk): ("Utrecht", "2024-06-01", "", False),
        str(waits.pk): ("华桂珍", "", "", True),
    }
    assert {one["page"] for one in told["triples"]} == {page_of(one) for one in (*moved, waits)}
    assert told["is_cut"] is False


def test_a_focus_draws_the_entity_and_its_neighbours(admin: Client, person: EndUser, moved: list[GraphTriple]) -> None:
    triple = factories.triple(person, "Max", "lives_in", "Utrecht")
    other_name = factories.triple(person, "Maxim", "plays", "chess").subject
    GraphEntity.objects.filter(pk=other_name.pk).update(merged_into=triple.subject)
    stranger = factories.triple(factories.end_user(person.tenant), "Eve", "knows", "Bob").subject

    def drawn(focus: GraphEntity) -> list[str]:
        told = admin.get(drawing_of(person), {"focus": str(focus.pk)}).json()
        return sorted(one["name"] for one in told["entities"])

    assert drawn(triple.subject) == drawn(other_name) == ["Max", "Utrecht", "chess"]
    # An entity of somebody else is none of this graph: all of it is drawn.
    assert len(drawn(stranger)) == 5


def test_of_a_large_graph_the_most_connected_is_drawn_and_the_page_says_so(
    admin: Client, person: EndUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memories.graph.drawing.ENTITIES", 4)
    for number in range(6):
        factories.triple(person, "hub", "leads_to", f"place {number}", now=on(2024, 1, number + 1))
    factories.triple(person, "far", "away_from", "here", now=on(2025))
    told = admin.get(drawing_of(person)).json()
    assert [one["name"] for one in told["entities"]] == ["hub", "place 5", "place 4", "place 3"]
    assert (told["is_cut"], told["all_entities"], told["all_triples"]) == (True, 9, 7)
    assert "it shows 4 of 9 entities" in text_of(admin.get(graph_of(person)))


def test_texts_are_data_in_the_drawing(admin: Client, person: EndUser) -> None:
    triple = factories.triple(person, HOSTILE, HOSTILE[:100], "Bob")
    GraphEntity.objects.filter(pk=triple.subject_id).update(type=HOSTILE[:40])
    answer = admin.get(drawing_of(person))
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert HOSTILE in [one["name"] for one in answer.json()["entities"]]


def test_only_who_may_see_triples_sees_the_drawing(
    person: EndUser, moved: list[GraphTriple], staff_who_may: Any
) -> None:
    addresses = (graph_of(person), drawing_of(person), page_of(moved[0].subject), list_of(GraphEntity))
    reader = staff_who_may("view_enduser", "view_graphtriple")
    other = staff_who_may("view_enduser", "view_fact")
    assert [reader.get(where).status_code for where in addresses] == [200] * 4
    assert [other.get(where).status_code for where in addresses] == [403] * 4
    assert graph_of(person) in text_of(reader.get(page_of(person)))
    assert graph_of(person) not in text_of(other.get(page_of(person)))


def test_lists_and_pages_show_a_day(admin: Client, person: EndUser, moved: list[GraphTriple]) -> None:
    page = text_of(admin.get(list_of(GraphTriple), {"as_of": "2024-05-31"}))
    assert "home city · Leiden" in page
    assert "home city · Utrecht" not in page
    assert graph_of(person) in page
    assert "No longer holds" in text_of(admin.get(page_of(moved[0])))
    then = text_of(admin.get(page_of(moved[0]), {"as_of": "2024-05-31"}))
    assert "<dd>Holds</dd>" in then
    of_entity = text_of(admin.get(page_of(moved[0].subject), {"as_of": "2024-05-31"}))
    assert "home city · Leiden" in of_entity
    assert "home city · Utrecht" not in of_entity


def test_an_entity_becomes_another_name_and_the_message_takes_it_back(admin: Client, person: EndUser) -> None:
    short, long = (factories.triple(person, name, "plays", "chess").subject for name in ("Max", "Maximilian"))
    page = admin.get(page_of(short))
    # The names that there are stand behind the field.
    assert "Maximilian" in text_of(page)
    done = admin.post(page_of(short, "join"), {"name": "maximilian", "reason": "Typing error"}, follow=True)
    short.refresh_from_db()
    assert short.merged_into == long
    assert AuditEvent.objects.filter(verb="join", object_id=short.pk, object_type="GraphEntity").count() == 1
    assert "Make it another name" not in text_of(done)
    assert page_of(long) in text_of(done)
    assert page_of(short) in text_of(admin.get(page_of(long)))
    change = ChangeSet.objects.get(verb="join_entities")
    undo = reverse("admin:memories_graphentity_undo_change", args=[short.pk, change.pk])
    assert undo in text_of(done)
    admin.post(undo)
    short.refresh_from_db()
    assert short.merged_into is None


@pytest.mark.parametrize(
    ("name", "why"),
    [("Nobody", "has no entity of this name"), ("max", "own name"), ("", "required")],
)
def test_a_name_that_fits_nothing_is_refused(admin: Client, person: EndUser, name: str, why: str) -> None:
    entity = factories.triple(person, "Max", "plays", "chess").subject
    answer = admin.post(page_of(entity, "join"), {"name": name})
    assert (answer.status_code, why in text_of(answer)) == (400 if not name else 409, True)
    # Nor is the person themself another name of something.
    own = factories.triple(person, "user", "plays", "chess").subject
    assert admin.post(page_of(own, "join"), {"name": "Max"}).status_code == 409
    assert not GraphEntity.objects.exclude(merged_into=None).exists()


def test_the_library_is_the_one_that_was_decided_on() -> None:
    digest = hashlib.sha256(Path(LIBRARY).read_bytes()).hexdigest()
    assert digest in Path(DECISION).read_text(encoding="utf-8")
