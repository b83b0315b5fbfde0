"""Which schemas a profile may have, and which values its fields take."""

from typing import Any

import pytest

from memories.curation.tenants.profile_schemas import MOST_PROFILES, delete_profile_schema
from memories.exceptions import Conflict, InvalidInput, NotFound, PreconditionFailed
from memories.models import AuditEvent, ProfileSchema
from memories.profiles import ValueRefused, field_of, fields_of
from memories.profiles.checking import MOST_BYTES, MOST_FIELDS, checked
from tests import factories
from tests.factories import COMMAND, NOW
from tests.profiles.defining import TRAVEL, define, without

TEXT = {"type": "string"}


def of(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def places(schema: Any) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        checked(schema)
    return [fault.pointer for fault in refused.value.faults]


def test_a_schema_is_stored_as_it_was_meant() -> None:
    dialect = "https://json-schema.org/draft/2020-12/schema"
    found = checked({"$schema": dialect, **TRAVEL, "additionalProperties": False})
    assert found == {
        **TRAVEL,
        "properties": {
            **TRAVEL["properties"],
            "address": {**TRAVEL["properties"]["address"], "additionalProperties": False},
        },
        "additionalProperties": False,
    }
    assert checked(found) == found


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ([], "/schema"),
        ({"type": "array"}, "/schema/type"),
        ({"type": "object"}, "/schema/properties"),
        ({**of(a=TEXT), "$defs": {}}, "/schema/$defs"),
        ({**of(a=TEXT), "additionalProperties": True}, "/schema/additionalProperties"),
        ({**of(a=TEXT), "required": ["b"]}, "/schema/required"),
        (of(a={"$ref": "#/$defs/x"}), "/schema/properties/a/type"),
        (of(a={"type": "string", "pattern": "(a+)+$"}), "/schema/properties/a/pattern"),
        (of(a={"type": ["string", "null"]}), "/schema/properties/a/type"),
        (of(a={"type": "string", "format": "email"}), "/schema/properties/a/format"),
        (of(a={"type": "string", "enum": ["x", "X"]}), "/schema/properties/a/enum/1"),
        (of(a={"type": "string", "enum": []}), "/schema/properties/a/enum"),
        (of(a={"type": "string", "maxLength": 501}), "/schema/properties/a/maxLength"),
        (of(a={"type": "integer", "minimum": "0"}), "/schema/properties/a/minimum"),
        (of(a={"type": "integer", "maxLength": 3}), "/schema/properties/a/maxLength"),
        (of(a={"type": "string", "x-category": "mood"}), "/schema/properties/a/x-category"),
        # No value would ever fit.
        (of(a={"type": "integer", "minimum": 5, "maximum": 1}), "/schema/properties/a/maximum"),
        (of(a={"type": "number", "minimum": 1, "exclusiveMaximum": 1}), "/schema/properties/a/exclusiveMaximum"),
        (of(a={"type": "string", "minLength": 10, "maxLength": 2}), "/schema/properties/a/maxLength"),
        (of(a={"type": "string", "maxLength": 0}), "/schema/properties/a/maxLength"),
        (of(a={"type": "string", "enum": ["no", "aisle"], "maxLength": 2}), "/schema/properties/a/enum/1"),
        (of(a={"type": "string", "format": "date", "maxLength": 8}), "/schema/properties/a/format"),
        (of(a={"type": "array", "items": TEXT, "minItems": 3, "maxItems": 1}), "/schema/properties/a/maxItems"),
        (of(a={"type": "array"}), "/schema/properties/a/items"),
        (of(a={"type": "array", "items": {"type": "array", "items": TEXT}}), "/schema/properties/a/items/type"),
        (of(a={"type": "array", "items": {"type": "object", "properties": {}}}), "/schema/properties/a/items/type"),
        (of(a=of(b=of(c={"type": "string"}))), "/schema/properties/a/properties/b"),
        (of(**{"a/b": {"type": "string"}}), "/schema/properties/a~1b"),
        (of(a={"type": "string"}, A={"type": "string"}), "/schema/properties/A"),
        (of(a={"type": "string", "title": "X"}, b={"type": "string", "title": "x"}), "/schema/properties/b/title"),
        (of(a={"type": "string", "title": "x" * 81}), "/schema/properties/a/title"),
        (of(a="string"), "/schema/properties/a"),
    ],
)  # fmt: skip
def test_what_is_not_accepted_is_named_with_its_place(schema: Any, place: str) -> None:
    assert place in places(schema)


def test_bounds_may_leave_room_for_a_single_value() -> None:
    bounds = [
        {"type": "integer", "minimum": 1, "maximum": 1},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        {"type": "string", "minLength": 2, "maxLength": 2},
        {"type": "string", "enum": ["no", "so"], "minLength": 2, "maxLength": 2},
        {"type": "string", "format": "date", "maxLength": 10},
        {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 1},
    ]
    for one in bounds:
        assert checked(of(a=one))["properties"]["a"] == one


def test_all_faults_are_named_at_once_and_say_what_is_accepted() -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(of(a={"type": "string", "pattern": "x", "const": "y"}, b={"type": "date"}))
    details = {fault.pointer: fault.detail for fault in refused.value.faults}
    assert set(details) == {f"/schema/properties/{name}" for name in ("a/pattern", "a/const", "b/type")}
    assert "enum, format, maxLength, minLength" in details["/schema/properties/a/pattern"]
    assert "string, number, integer, boolean, array" in details["/schema/properties/b/type"]


def test_its_size_is_bounded() -> None:
    assert places(of(**{f"f{number}": {"type": "string"} for number in range(MOST_FIELDS + 1)})) == [
        "/schema/properties"
    ]
    assert places(of(a={"type": "string", "description": "x" * MOST_BYTES})) == ["/schema"]
    deep: Any = {"type": "string"}
    for _ in range(300):
        deep = of(a=deep)
    assert places(deep)


@pytest.mark.django_db
class TestValues:
    @pytest.mark.parametrize(
        ("field", "given", "value"),
        [
            ("home_airport", " AMS ", "AMS"),
            ("seat", "Window", "window"),
            ("children", "3", 3),
            ("children", 2.0, 2),
            ("budget", "12.5", 12.5),
            ("budget", "0.0000001", 1e-07),
            ("budget", 0.1 + 0.2, 0.30000000000000004),
            ("vegetarian", "是", True),
            ("vegetarian", False, False),
            ("passport_until", "2031-05-20", "2031-05-20"),
            ("languages", '["nl", "en"]', ["nl", "en"]),
            ("languages", "荷兰语、英语", ["荷兰语", "英语"]),
            ("languages", ["nl", "nl"], ["nl"]),
            ("address.city", "Leiden", "Leiden"),
        ],
    )
    def test_a_value_is_read_in_the_fields_own_form(self, field: str, given: Any, value: Any) -> None:
        fields = {one.pointer: one for one in fields_of(define(factories.tenant()))}
        read = fields[field].read(given)
        assert (type(read), read) == (type(value), value)
        assert fields[field].read(fields[field].text(read)) == read

    @pytest.mark.parametrize(
        ("field", "given"),
        [
            ("home_airport", "x" * 41),
            ("home_airport", ""),
            ("home_airport", None),
            ("home_airport", {"a": 1}),
            ("seat", "middle"),
            ("children", "many"),
            ("children", 21),
            ("children", 2.5),
            ("children", True),
            ("children", "9" * 400),
            ("budget", float("nan")),
            ("budget", float("inf")),
            ("vegetarian", "perhaps"),
            ("vegetarian", 1),
            ("passport_until", "next year"),
            ("passport_until", "2031-13-01"),
            ("languages", ["a", "b", "c", "d"]),
            ("languages", "[" * 100_000),
            ("languages", [["a"]]),
        ],
    )
    def test_what_it_does_not_take_is_refused_without_its_words(self, field: str, given: Any) -> None:
        fields = {one.pointer: one for one in fields_of(define(factories.tenant()))}
        with pytest.raises(ValueRefused) as refused:
            fields[field].read(given)
        assert str(given) not in str(refused.value) or given in ("", None)

    def test_a_list_is_as_long_as_a_fact_can_keep(self) -> None:
        (field,) = fields_of(define(factories.tenant(), of(a={"type": "array", "items": {"type": "string"}})))
        with pytest.raises(ValueRefused):
            field.read(["x" * 200, "y" * 200, "z" * 200])


@pytest.mark.django_db
class TestVersions:
    def test_each_change_is_a_version_and_the_same_again_is_none(self) -> None:
        tenant = factories.tenant()
        assert define(tenant).version == define(tenant).version == 1
        assert define(tenant, without("seat"), expected_version=1).version == 2
        with pytest.raises(PreconditionFailed):
            define(tenant, expected_version=1)
        assert [event.verb for event in AuditEvent.objects.filter(object_type="ProfileSchema")] == ["write", "write"]

    def test_a_field_that_comes_back_has_another_key(self) -> None:
        tenant = factories.tenant()
        key = "profile.travel.seat"
        define(tenant)
        found = field_of(tenant, key)
        assert found
        assert found.pointer == "seat"
        define(tenant, without("seat"))
        assert field_of(tenant, key) is None
        define(tenant)
        assert field_of(tenant, key) is None
        assert field_of(tenant, f"{key}~1")

    def test_a_profile_that_comes_back_has_other_keys(self) -> None:
        tenant = factories.tenant()
        define(tenant)
        delete_profile_schema(tenant=tenant, name="travel", actor=COMMAND, now=NOW)
        assert not ProfileSchema.objects.present().exists()
        with pytest.raises(NotFound):
            delete_profile_schema(tenant=tenant, name="travel", actor=COMMAND, now=NOW)
        assert {one.life for one in fields_of(define(tenant, expected_version=0))} == {1}

    def test_a_tenant_has_some_profiles_and_no_more(self) -> None:
        tenant = factories.tenant()
        for number in range(MOST_PROFILES):
            define(tenant, name=f"p{number}")
        with pytest.raises(Conflict):
            define(tenant)
        define(tenant, without("seat"), name="p0")
        for name in ("Travel", "a-b", "x" * 25, ""):
            with pytest.raises(InvalidInput):
                define(factories.tenant(), name=name)

    def test_the_longest_names_make_a_key_that_a_fact_can_have(self) -> None:
        longest = "x" * 30
        row = define(factories.tenant(), of(**{longest: of(**{longest: {"type": "string"}})}), name="n" * 24)
        row.lives = {f"{longest}.{longest}": 99}
        assert len(fields_of(row)[0].key) <= 100
