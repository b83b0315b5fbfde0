"""What was counted beside what was deleted, or is in the file: where the two differ, the case's page says why."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories.models import CaseType, PrivacyCase
from memories.privacy import erasing, exporting, registry
from tests import factories
from tests.admin.cases import case_of
from tests.admin.pages import page_of, text_of
from tests.privacy import exports
from tests.privacy.lease import claimed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("profile", [CaseType.ACCESS, CaseType.PORTABILITY])
def test_a_file_with_fewer_rows_than_were_counted_says_why(profile: str, admin: Client) -> None:
    person = exports.somebody()
    case = case_of(person, "scoped", type=profile)
    PrivacyCase.objects.filter(pk=case.pk).update(preview=registry.counts(person))
    exporting.make(claimed(case))
    page: Any = admin.get(page_of(case))
    rows = page.context["rows"]
    assert page.context["total"] > page.context["total_done"] > 0
    assert [row.name for row in rows if (row.count != row.done) != bool(row.why)] == []
    by_name = {row.name: row for row in rows}
    # Lists of the file go by names of their own; the page has one row for each store.
    assert by_name["Facts"].done > 0
    assert "profile_sections" not in by_name
    assert by_name["Sessions"].why == ""
    access, portability = "In the file as parts of other rows.", "Not provided by the end user"
    assert (access if profile == CaseType.ACCESS else portability) in text_of(page)


def test_an_erasure_that_deletes_fewer_rows_than_were_counted_says_why(admin: Client) -> None:
    person = exports.somebody()
    case = case_of(person, "running", channel="email")
    PrivacyCase.objects.filter(pk=case.pk).update(preview=registry.counts(person))
    work = claimed(case)
    for step in erasing.steps(work, now=timezone.now()):
        if step == erasing.PEOPLE:
            break
    PrivacyCase.objects.filter(pk=case.pk).update(state="verifying")
    page: Any = admin.get(page_of(case))
    rows = {row.name: row for row in page.context["rows"]}
    assert (rows["Privacy cases"].count, rows["Privacy cases"].done) == (1, 0)
    assert [name for name, row in rows.items() if (row.count != row.done) != bool(row.why)] == []
    assert "Cases stay as codes and times." in text_of(page)
    assert rows["Facts"].count == rows["Facts"].done > 0


def test_sums_that_agree_need_no_reason(admin: Client) -> None:
    counts = {"memories.Turn": 12, "memories.Fact": 3}
    page: Any = admin.get(page_of(case_of(factories.end_user(), "completed", preview=counts, counts=counts)))
    assert [row.why for row in page.context["rows"]] == ["", ""]
    assert "case-why" not in text_of(page)
