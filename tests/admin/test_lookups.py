"""Lists take their declared filters alone: no address asks for what no page shows, letter by letter."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin as django_admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import BooleanField, Model
from django.test import Client, RequestFactory
from django.urls import reverse

from memories.admin.site.page import HubModelAdmin
from memories.models import Fact, Operator
from tests import factories
from tests.admin import walk
from tests.admin.pages import list_of, page_of

pytestmark = pytest.mark.django_db
PAGES: dict[type[Model], Any] = dict(django_admin.site._registry)
# As the addresses of an attack, and two that a filter of Django's would take of a field that is declared.
LOOKUPS = ("", "__startswith", "__regex", "__gt", "__in", "__isnull", "__id__exact", "__exact")
# Of fields that no filter is about, which are thousands.
PLAIN = LOOKUPS[1:2]
# The fields of what its relations lead to are asked of these alone: all lists decide in HubChangeList.
DEEP = (Fact, Operator)


def fields_of(model: type[Model], depth: int) -> Iterator[str]:
    """Every field of the model, and of those that its relations lead to, either way, as look-ups name them."""
    for field in model._meta.get_fields():
        name = field.name
        yield name
        if depth > 1 and field.is_relation and isinstance(field.related_model, type):
            yield from (f"{name}__{deeper}" for deeper in fields_of(field.related_model, depth - 1))


def narrowed_by(page: HubModelAdmin, operator: Operator, **query: str) -> Any:
    """The list under this address. Errors: IncorrectLookupParameters."""
    request = RequestFactory().get("/", query)
    request.user = operator
    return page.get_changelist_instance(request)


def declared(page: HubModelAdmin, operator: Operator) -> set[str]:
    """The parameters of the list's filters, and the look-ups that links of other pages name."""
    filters = [name for spec in narrowed_by(page, operator).filter_specs for name in spec.expected_parameters()]
    # A filter that offers one choice alone is not drawn, and takes its parameter all the same.
    relations = [name for name in page.list_filter if isinstance(name, str) and page.opts.get_field(name).is_relation]
    undrawn = [f"{name}{end}" for name in relations for end in ("__id__exact", "__isnull")]
    return {*filters, *undrawn, *page.linked_lookups()}


def taken(page: HubModelAdmin, operator: Operator, names: Iterator[str]) -> list[str]:
    """Those of the look-ups that the list takes though nobody declared them."""
    known = declared(page, operator)
    about = {name.partition("__")[0] for name in known}
    ends = {True: LOOKUPS, False: PLAIN}
    asked = {f"{name}{end}" for name in names for end in ends[name.partition("__")[0] in about]} - known
    return sorted(name for name in asked if _is_taken(page, operator, name))


def _is_taken(page: HubModelAdmin, operator: Operator, name: str) -> bool:
    try:
        narrowed_by(page, operator, **{name: "a"})
    except IncorrectLookupParameters:
        return False
    return True


@pytest.mark.parametrize("model", PAGES, ids=lambda model: model.__name__)
def test_no_list_takes_a_look_up_that_it_does_not_declare(model: type[Model], administrator: Operator) -> None:
    names = set(fields_of(model, depth=2 if model in DEEP else 1))
    assert len(names) > 3
    assert taken(PAGES[model], administrator, iter(names)) == []


def test_the_walk_sees_a_list_that_takes_more(administrator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(PAGES[Operator]), "linked_lookups", lambda _page: {"password__startswith"})
    monkeypatch.setattr("tests.admin.test_lookups.declared", lambda *_: set())
    assert "password__startswith" in taken(PAGES[Operator], administrator, iter(["password"]))


def is_switch(page: HubModelAdmin, name: str) -> bool:
    fields = {field.name: field for field in page.model._meta.get_fields()}
    return isinstance(fields.get(name.partition("__")[0]), BooleanField)


def test_declared_filters_and_links_narrow(administrator: Operator) -> None:
    walk.records()
    for page in PAGES.values():
        for name in declared(page, administrator):
            is_flag = "group" in name or "isnull" in name or is_switch(page, name)
            narrowed_by(page, administrator, **{name: "0" if is_flag else "00000000-0000-7000-8000-000000000000"})


def test_a_true_and_a_false_prefix_are_answered_alike(admin: Client, administrator: Operator) -> None:
    walk.records()
    first = administrator.password[0]
    for model, name in (
        (Operator, "password__startswith"), (Fact, "tenant__api_keys__prefix__startswith"),
        (Fact, "end_user__external_id__startswith"), (Fact, "evidence__quote__startswith"),
    ):  # fmt: skip
        answers = []
        for value in (first, "\u0416", ""):
            answer = admin.get(list_of(model), {name: value})
            answers.append((answer.status_code, answer.headers.get("Location"), answer.content))
        assert {(status, to) for status, to, _ in answers} == {(302, f"{list_of(model)}?e=1")}, name
        assert len({content for *_, content in answers}) == 1, name
        assert admin.get(list_of(model), {name: first, "e": "1"}).status_code == 200
        query = {"query": f"{name}={first}", "name": "x"}
        assert admin.post(f"{list_of(model)}export/", query).status_code in (400, 403)
        assert admin.post(f"{list_of(model)}save-filter/", query).status_code == 400


def test_what_belongs_to_djangos_own_forms_is_refused(admin: Client) -> None:
    for query in ("_popup=1", "_to_field=password", "_to_field=id", "_source_model=x"):
        assert admin.get(f"{list_of(Operator)}?{query}").status_code in (302, 400), query


def test_records_are_found_by_their_ids_alone(admin: Client) -> None:
    event = walk.records()["auditevent"]
    assert admin.get(page_of(event)).status_code == 200
    assert admin.get(page_of(event), {"_to_field": "actor_id"}).status_code == 400


def test_nothing_is_completed(admin: Client) -> None:
    asked = {"app_label": "memories", "model_name": "fact", "field_name": "end_user", "term": ""}
    assert admin.get(reverse("admin:autocomplete"), asked).status_code == 404


def test_an_order_by_a_column_that_is_none_changes_nothing(admin: Client) -> None:
    person = factories.end_user()
    for name in ("one", "two", "three"):
        factories.fact(person, name)
    plain = [row.pk for row in admin.get(list_of(Fact)).context["cl"].result_list]
    for order in ("99", "password", "-password", "end_user__external_id", "-99.x"):
        rows = admin.get(list_of(Fact), {"o": order}).context["cl"].result_list
        assert {row.pk for row in rows} == set(plain)
