"""A context that was served is an entry of the timeline, and "Why recalled?" compares it with today's."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories.admin.people import timeline
from memories.admin.recall.logged import compare
from memories.curation.people.merging.merge import merge_people
from memories.models import EndUser, LoggedContext
from tests import factories
from tests.admin.pages import page_of, text_of

pytestmark = pytest.mark.django_db
THEN = factories.NOW + timedelta(hours=1)


@pytest.fixture
def person() -> EndUser:
    return factories.end_user(external_id="lin")


def asked(person: EndUser, **over: Any) -> dict[str, Any]:
    given = {"tenant": person.tenant_id, "user_id": person.external_id, "query": "Where does Lin live?"}
    return {**given, "agent": "", "max_tokens": 2000, **over}


class TestTimeline:
    def test_a_context_is_an_entry(self, admin: Client, person: EndUser) -> None:
        row = factories.logged_context(person, [factories.fact(person)], agent_id="sales", created_at=THEN)
        page = text_of(admin.get(page_of(person)))
        assert page_of(row) in page
        assert "Context with 1 memory" in page
        assert page_of(row) in text_of(admin.get(f"{page_of(person)}?kind=context"))
        assert page_of(row) not in text_of(admin.get(f"{page_of(person)}?kind=fact"))

    def test_those_of_somebody_merged_stay_and_are_shown(self, person: EndUser) -> None:
        other = factories.end_user(person.tenant)
        row = factories.logged_context(other, created_at=THEN)
        filters = timeline.TimelineFilters(kind="context")
        sources = timeline.sources_for(lambda _: True)
        assert timeline.read(person, sources, filters).items == []
        merge_people(survivor=person.pk, merged=other.pk, actor=factories.COMMAND, now=factories.NOW)
        assert [item.row.pk for item in timeline.read(person, sources, filters).items] == [row.pk]

    def test_pages_of_it(self, person: EndUser) -> None:
        sources, filters = timeline.sources_for(lambda _: True), timeline.TimelineFilters(kind="context")
        made = [factories.logged_context(person, created_at=THEN + timedelta(minutes=at)) for at in range(60)]
        first = timeline.read(person, sources, filters)
        rest = timeline.read(person, sources, timeline.TimelineFilters(kind="context", before=first.older))
        assert [item.row.pk for item in (*first.items, *rest.items)] == [row.pk for row in reversed(made)]


class TestWhyRecalled:
    def test_then_only_both_and_now_only(self, admin: Client, person: EndUser) -> None:
        both, new, gone = (factories.fact(person, f"Lin lives in {town}") for town in ("Leiden", "Delft", "Utrecht"))
        row = factories.logged_context(person, [both, gone], created_at=THEN, query="Where does Lin live?")
        gone_id = gone.pk
        gone.delete()
        answer = admin.post(reverse("admin:recalled"), asked(person, context=row.pk))
        assert answer.status_code == 200
        found = [(one.memory.id, bool(one.then), one.is_now) for one in answer.context["compared"]]
        assert found == [(both.pk, True, True), (gone_id, True, False), (new.pk, False, True)]
        assert "Then only" in text_of(answer)
        assert "Deleted in the meantime" in text_of(answer)

    def test_a_link_fills_in_what_was_asked(self, admin: Client, person: EndUser) -> None:
        row = factories.logged_context(person, query="Where does Lin live?", agent_id="sales", max_tokens=700)
        page = text_of(admin.get(f"{reverse('admin:recalled')}?context={row.pk}"))
        assert "Where does Lin live?" in page
        assert f'<option value="{row.pk}" selected>' in page
        assert 'value="700"' in page
        assert reverse("admin:recalled") + f"?context={row.pk}" in text_of(admin.get(page_of(row)))

    def test_another_persons_is_not_compared(self, admin: Client, person: EndUser) -> None:
        row = factories.logged_context(factories.end_user(person.tenant))
        answer = admin.post(reverse("admin:recalled"), asked(person, context=row.pk))
        assert (answer.status_code, answer.context["compared"]) == (200, None)
        mine = factories.logged_context(person)
        answer = admin.post(reverse("admin:recalled"), asked(person, context=mine.pk))
        assert answer.context["compared"] == []

    @pytest.mark.parametrize("context", ["nonsense", "00000000-0000-7000-8000-000000000000"])
    def test_an_id_of_nothing(self, admin: Client, person: EndUser, context: str) -> None:
        assert admin.get(f"{reverse('admin:recalled')}?context={context}").status_code == 200
        answer = admin.post(reverse("admin:recalled"), asked(person, context=context))
        assert answer.status_code == (400 if context == "nonsense" else 200)

    def test_without_the_permission_none_is_offered(self, staff_who_may: Any, person: EndUser) -> None:
        row = factories.logged_context(person)
        seeing = ("view_enduser", "view_fact", "view_episode", "view_session")
        answer = staff_who_may(*seeing).post(reverse("admin:recalled"), asked(person, context=row.pk))
        assert str(row.pk) not in text_of(answer)
        answer = staff_who_may(*seeing, "view_loggedcontext").post(reverse("admin:recalled"), asked(person))
        assert str(row.pk) in text_of(answer)


def test_what_is_both_is_listed_once(person: EndUser) -> None:
    row = factories.logged_context(person, [factories.fact(person)])
    row = LoggedContext.objects.select_related("end_user__merged_into").get(pk=row.pk)
    assert len(compare(row, [])) == 1
