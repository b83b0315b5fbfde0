"""Profiles by a tenant's own schemas: the tenant's page that defines them, and the person's with its generated form."""

import json
import re
from typing import Any

import pytest
from django.test import Client

from memories.models import ChangeSet, EndUser, Fact, ProfileSchema, Tenant
from memories.profiles import fields_of
from tests import factories
from tests.profiles.defining import TRAVEL, define, document, profile, without

SCHEMA = json.dumps(TRAVEL)


def address(tenant: Tenant) -> str:
    return f"/admin/memories/tenant/{tenant.pk}/profiles/"


def send(client: Client, tenant: Tenant, act: str, **given: Any) -> Any:
    return client.post(address(tenant), {"act": act, **given}, follow=True)


class TestDefining:
    def test_profiles_are_defined_changed_and_removed(self, admin: Client, tenant: Tenant) -> None:
        assert "New profile" in admin.get(address(tenant)).content.decode()
        given = {"name": "travel", "schema": SCHEMA, "agent_id": "Sales", "in_context": "on"}
        made = send(admin, tenant, "save", version=0, **given)
        assert "“travel” is saved" in made.content.decode()
        row = ProfileSchema.objects.get()
        assert (row.version, row.agent_id, row.in_context) == (1, "sales", True)
        assert list(row.schema["properties"])[:2] == ["home_airport", "seat"]
        changed = {**given, "schema": json.dumps(without("seat")), "agent_id": ""}
        send(admin, tenant, "save", version=1, **changed)
        late = send(admin, tenant, "save", version=1, **given)
        assert (late.status_code, "aisle" in late.content.decode()) == (412, True)
        assert ProfileSchema.objects.get().version == 2
        send(admin, tenant, "remove", name="travel", version=2)
        assert not ProfileSchema.objects.present().exists()
        assert send(admin, tenant, "remove", name="travel", version=2).status_code == 404
        assert send(admin, tenant, "anything").status_code == 400

    def test_what_is_not_accepted_is_shown_beside_the_schema(self, admin: Client, tenant: Tenant) -> None:
        bad = {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}
        page = send(admin, tenant, "save", version=0, name="travel", schema=json.dumps(bad))
        assert page.status_code == 400
        assert "/properties/a/pattern: This keyword is not accepted here." in page.content.decode()
        for text in ("{", "[" * 10_000):
            broken = send(admin, tenant, "save", version=0, name="travel", schema=text)
            assert (broken.status_code, "This is no JSON." in broken.content.decode()) == (400, True)
        odd = '{"type": "object", "properties": {"a": {"type": "string", "title": "\\ud800x", "enum": ["\\ud800"]}}}'
        for given in ({"schema": odd, "name": "travel"}, {"schema": SCHEMA, "name": "a\x00b"}):
            assert send(admin, tenant, "save", version=0, **given).status_code == 400
        assert send(admin, tenant, "remove", name="a\x00b").status_code == 404


class TestOfAPerson:
    @pytest.fixture
    def person(self, tenant: Tenant) -> EndUser:
        define(tenant)
        return factories.end_user(tenant, external_id="ann")

    def page(self, person: EndUser) -> str:
        return f"/admin/memories/enduser/{person.pk}/profiles/travel/"

    def save(self, client: Client, person: EndUser, **values: Any) -> Any:
        shown = profile(person)
        known = {"field.languages": "\n".join(shown.document.get("languages", []))}
        known |= {
            f"field.{one.field.pointer}": one.field.text(one.value)
            for one in shown.values
            if one.field.pointer != "languages"
        }
        given = {"profile": "travel", "revision": shown.revision, **known}
        given |= {f"field.{name.replace('__', '.')}": value for name, value in values.items()}
        return client.post(f"/admin/memories/enduser/{person.pk}/write_fields/", given, follow=True)

    def test_a_form_is_made_of_the_schema(self, admin: Client, person: EndUser) -> None:
        text = admin.get(self.page(person)).content.decode()
        assert "Home airport" in text
        assert re.search(r'<select name="field\.seat"', text)
        assert re.search(r'<input type="date" name="field\.passport_until"', text)
        assert re.search(r'<textarea name="field\.languages"', text)
        assert 'name="field.address.city"' in text
        assert "On flights" in text
        tab = admin.get(f"/admin/memories/enduser/{person.pk}/profile/").content.decode()
        assert self.page(person) in tab
        assert admin.get(self.page(person).replace("travel", "nope")).status_code == 404

    def test_fields_are_corrected_and_the_change_undone(self, admin: Client, person: EndUser) -> None:
        done = self.save(admin, person, seat="aisle", languages="Dutch\nFrisian", vegetarian="false", children="2")
        assert "“travel” is saved" in done.content.decode()
        assert document(person) == {
            "seat": "aisle",
            "children": 2,
            "vegetarian": False,
            "languages": ["Dutch", "Frisian"],
        }
        self.save(admin, person, children="3", address__city="Leiden")
        assert document(person)["children"] == 3
        assert Fact.objects.get(value="3").binding
        newest = ChangeSet.objects.latest("created_at")
        admin.post(f"/admin/memories/enduser/{person.pk}/undo/{newest.pk}/")
        assert document(person)["children"] == 2
        assert "address" not in document(person)
        self.save(admin, person, children="", seat="")
        assert document(person) == {"vegetarian": False, "languages": ["Dutch", "Frisian"]}
        assert "Nothing was changed." in self.save(admin, person).content.decode()

    def test_a_bad_value_is_refused_beside_its_field(self, admin: Client, person: EndUser) -> None:
        page = self.save(admin, person, children="99", seat="aisle")
        assert page.status_code == 400
        text = page.content.decode()
        assert "Give at most 20." in text
        assert 'value="99"' in text
        assert document(person) == {}
        for name in ("nope", "a\x00b"):
            lost = admin.post(f"/admin/memories/enduser/{person.pk}/write_fields/", {"profile": name})
            assert lost.status_code in (400, 404)

    def test_of_one_agent_it_has_what_that_agent_alone_remembers(self, admin: Client, person: EndUser) -> None:
        row = define(person.tenant, name="visits", agent_id="vet")
        key = fields_of(row)[0].key
        factories.fact(person, "Flies from Eindhoven", agent_id="vet", key=key, value="Eindhoven")
        page = f"/admin/memories/enduser/{person.pk}/profiles/visits/"
        shown = admin.get(page).content.decode()
        assert 'value="Eindhoven"' in shown
        revision = re.findall(r'name="revision" value="(\w+)"', shown)
        field = f"field.{fields_of(row)[0].pointer}"
        given = {"profile": "visits", "revision": revision[0], field: "Schiphol"}
        saved = admin.post(f"/admin/memories/enduser/{person.pk}/write_fields/", given, follow=True)
        assert "“visits” is saved" in saved.content.decode()
        assert Fact.objects.get(key=key, agent_id="vet").value == "Schiphol"

    def test_somebody_else_was_faster(self, admin: Client, person: EndUser) -> None:
        given = {"profile": "travel", "revision": profile(person).revision, "field.seat": "aisle"}
        self.save(admin, person, seat="window")
        late = admin.post(f"/admin/memories/enduser/{person.pk}/write_fields/", given)
        assert late.status_code == 412
        assert document(person) == {"seat": "window"}

    def test_what_is_known_is_shown_with_its_evidence(self, admin: Client, person: EndUser) -> None:
        session = factories.session(person, (("user", "I fly from Eindhoven"), ("assistant", "Noted.")))
        fact = factories.fact(person, "Flies from Eindhoven", category="other", key="profile.travel.home_airport")
        Fact.objects.update(value="Eindhoven")
        factories.evidence(fact, session.turns.get(number=1), quote="I fly from Eindhoven")
        text = admin.get(self.page(person)).content.decode()
        assert "“I fly from Eindhoven”" in text
        assert f"/admin/memories/fact/{fact.pk}/change/" in text
        define(person.tenant, without(home_airport={"type": "string", "enum": ["AMS"]}))
        text = admin.get(self.page(person)).content.decode()
        assert "Not served: Give one of: AMS." in text
        # Another field is saved: what is not served any more is left alone.
        self.save(admin, person, seat="aisle")
        assert Fact.objects.get(pk=fact.pk).status == "active"
