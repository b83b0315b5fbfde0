"""What each profile tells, held against the registry of all places where personal data can be."""

from typing import Any

import pytest
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction

from memories.models import CaseType
from memories.privacy import registry
from memories.privacy.exports import omissions, profiles
from memories.privacy.exports.profiles import SECTIONS, ExportSection
from memories.privacy.exports.rows import COMPUTED, rows, subject_of
from tests import factories
from tests.privacy import exports

ALL = [(one, outer) for outer in SECTIONS for one in (outer, *outer.inside)]


def test_every_store_and_every_field_is_told_or_left_out_with_a_reason() -> None:
    assert omissions.undecided() == []
    assert all(line.reason for line in omissions.OMISSIONS)


def test_the_guard_sees_a_field_that_nobody_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    without = [line for line in omissions.OMISSIONS if line.store != "memories.PrivacyExport"]
    monkeypatch.setattr(omissions, "OMISSIONS", without)
    assert omissions.undecided() == [f"memories.PrivacyExport.{name}" for name in ("tenant", "token_digest")]


def test_the_guard_sees_a_store_that_nobody_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    papers = registry.Store("papers", "")
    monkeypatch.setattr(registry, "all_stores", lambda: [*registry.STORES, papers])
    assert omissions.undecided() == ["papers.*"]


def test_nothing_is_both_told_and_left_out() -> None:
    for one, _ in ALL:
        lines = [line for line in omissions.OMISSIONS if line.store == one.store]
        silent = {name for line in lines for name in line.fields or one.fields}
        assert not silent & {*one.fields, *one.computed}, one.name


def test_names_are_those_of_columns() -> None:
    for one, _ in ALL:
        columns = {field.name for field in one.model._meta.concrete_fields}
        assert {*one.fields, *one.provided} <= columns, one.name
        assert {(one.store, name) for name in one.computed} <= COMPUTED.keys(), one.name
    used = {(one.store, name) for one, _ in ALL for name in one.computed}
    assert used == COMPUTED.keys()


def test_what_is_provided_is_part_of_access() -> None:
    for one, _ in ALL:
        assert set(one.provided) <= set(one.fields), one.name
    assert [section.name for section in profiles.sections_of(CaseType.PORTABILITY)] == [
        "people", "sessions", "turns", "attachments", "facts", "said_in_groups",
    ]  # fmt: skip


@pytest.mark.django_db
def test_a_mark_in_each_text_is_told() -> None:
    """A canary in every column that can hold one comes out at its name; none of those left out does."""
    person = exports.somebody()
    factories.privacy_export(exports.case_of(person, needles=b"MARK", signature="MARK"))
    for section, outer in ALL:
        marked = {name: mark for name in texts_of(section) if (mark := mark_for(section, name)) is not None}
        with transaction.atomic():
            section.model._default_manager.update(**marked)
            found = list(rows(outer, subject_of(person, CaseType.ACCESS)))
            transaction.set_rollback(True)
        if section is not outer:
            inner = [row[section.name] for row in found if row[section.name]]
            found = [one for row in inner for one in (row if isinstance(row, list) else [row])]
        where = f"{outer.name}.{section.name}"
        assert found, where
        for name in {*section.fields} & marked.keys():
            assert all("MARK" in str(row[name]) for row in found), (where, name)
        kept = {name for name in marked if name not in {*section.fields, *section.computed}}
        assert all("MARK" not in str(row.get(name)) for row in found for name in kept), where


def texts_of(section: ExportSection) -> list[str]:
    """Columns that can hold a mark without breaking a constraint."""
    fixed = {"embedded_hash", "content_hash", "receipt"}
    if section.store == "memories.Attachment":
        # The file is gone once it was read.
        fixed.add("content")
    return [field.name for field in section.model._meta.concrete_fields if field.name not in fixed]


def mark_for(section: ExportSection, name: str) -> Any:
    field: Any = section.model._meta.get_field(name)
    # One row of a person's has it; unique ones and codes of ours would be refused.
    if field.is_relation or field.choices or field.primary_key or field.unique or unique_with(field):
        return None
    if isinstance(field, ArrayField):
        return None if isinstance(field.base_field, models.IntegerField | models.UUIDField) else ["MARK"]
    if isinstance(field, models.JSONField):
        return {"MARK": "MARK"}
    if isinstance(field, models.BinaryField):
        return b"MARK"
    fits = isinstance(field, models.CharField | models.TextField) and (field.max_length or 4) >= 4
    return "MARK" if fits else None


def unique_with(field: models.Field[Any, Any]) -> bool:
    constraints = field.model._meta.constraints
    unique = [one.fields for one in constraints if isinstance(one, models.UniqueConstraint)]
    return any(field.name in names for names in unique)


@pytest.mark.django_db
def test_ids_of_the_person_are_told() -> None:
    """What the canary passes over."""
    person = exports.somebody(external_id="u-42")
    subject = subject_of(person, CaseType.ACCESS)
    told = {section.name: list(rows(section, subject)) for section in SECTIONS}
    assert [row["external_id"] for row in told["people"]][:1] == ["u-42"]
    assert all(row["external_id"] and row["agent_id"] == "travel" for row in told["sessions"])
    assert [row["role"] for row in told["turns"]] == ["user", "assistant"]


@pytest.mark.django_db
def test_other_people_are_a_number() -> None:
    person = exports.somebody(external_id="u-42")
    shared = factories.fact(person, "Shared", allowed_users=["u-42", "u-77", "u-78"])
    exports.revise(fact=shared, verb="add", actor=factories.COMMAND, before={}, reason="", now=exports.NOW)
    [facts] = [section for section in SECTIONS if section.name == "facts"]
    [row] = [row for row in rows(facts, subject_of(person, CaseType.ACCESS)) if row["id"] == shared.pk]
    assert (row["allowed_users"], row["allowed_others"]) == (["u-42"], 2)
    [revision] = row["revisions"]
    assert (revision["after"]["allowed_users"], revision["after"]["allowed_others"]) == (["u-42"], 2)
    assert "u-77" not in str(row)
