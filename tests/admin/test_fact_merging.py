"""Merging facts in the browser: what is offered, what is shown before, what is done, undone and split again."""

import re
from typing import Any

import pytest
from django.test import Client

from memories.audit import Actor
from memories.curation.facts.keeping import pin_fact
from memories.models import ChangeSet, EndUser, Fact, Operator
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.admin.test_tenant_scope import limited
from tests.factories import NOW


@pytest.fixture
def facts(person: EndUser) -> list[Fact]:
    texts = ("Allergic to peanuts", "Has a peanut allergy", "Likes green tea")
    return [factories.fact(person, text) for text in texts]


def offered(response: Any) -> list[str]:
    return re.findall(r'name="other" value="([^"]+)"', text_of(response))


def choose(client: Client, fact: Fact, *others: Fact) -> Any:
    return client.post(page_of(fact, "merge"), {"other": [str(one.pk) for one in others]})


def confirm(client: Client, facts: list[Fact], **over: Any) -> Any:
    form = {
        "confirmed": "1",
        "other": [str(fact.pk) for fact in facts[1:]],
        "expected": [f"{fact.pk}:{fact.version}" for fact in facts],
        "survivor": str(facts[0].pk),
        "content": "Allergic to peanuts, badly",
        "reason": "The same",
    }
    return client.post(page_of(facts[0], "merge"), {**form, **over})


def now_of(fact: Fact) -> Fact:
    return Fact.objects.get(pk=fact.pk)


class TestChoosing:
    def test_offers_what_the_same_are_told_the_nearest_first(self, admin: Client, facts: list[Fact]) -> None:
        person = facts[0].end_user
        for over in ({"agent_id": "sales"}, {"status": "pending"}, {"allowed_roles": ["admin"]}):
            factories.fact(person, f"Not this: {over}", **over)
        factories.fact(factories.end_user(person.tenant), "Allergic to peanuts")
        assert offered(admin.get(page_of(facts[0], "merge"))) == [str(facts[1].pk), str(facts[2].pk)]

    def test_the_same_key_comes_first(self, admin: Client, facts: list[Fact]) -> None:
        Fact.objects.filter(pk__in=[facts[0].pk, facts[2].pk]).update(key="allergy")
        assert offered(admin.get(page_of(facts[0], "merge")))[0] == str(facts[2].pk)

    def test_says_so_when_there_is_nothing_to_merge_with(self, admin: Client, person: EndUser) -> None:
        assert "There is nothing to merge." in text_of(admin.get(page_of(factories.fact(person), "merge")))


class TestPreview:
    def test_shows_what_would_be_and_changes_nothing(self, admin: Client, facts: list[Fact]) -> None:
        page = text_of(choose(admin, *facts))
        assert "2 others are superseded" in page
        assert all(f"{fact.pk}:{fact.version}" in page for fact in facts)
        assert not ChangeSet.objects.filter(verb="merge").exists()

    @pytest.mark.parametrize("chosen", [[], ["no id"]], ids=["nothing", "nonsense"])
    def test_asks_again_when_nothing_was_chosen(self, admin: Client, facts: list[Fact], chosen: list[str]) -> None:
        response = admin.post(page_of(facts[0], "merge"), {"other": chosen})
        assert response.status_code in (400, 409)
        assert 'role="alert"' in text_of(response)

    def test_refuses_what_is_not_active_any_more(self, admin: Client, facts: list[Fact]) -> None:
        Fact.objects.filter(pk=facts[1].pk).update(status="trashed")
        assert choose(admin, *facts).status_code == 409


class TestMerging:
    def test_leads_to_the_fact_that_stayed_which_offers_the_undo(self, admin: Client, facts: list[Fact]) -> None:
        response = confirm(admin, facts, survivor=str(facts[1].pk))
        assert (response.status_code, response["Location"]) == (302, page_of(facts[1]))
        assert now_of(facts[1]).content == "Allergic to peanuts, badly"
        page = text_of(admin.get(page_of(facts[1])))
        assert page.count("Merged from") == 2
        made = ChangeSet.objects.get(verb="merge")
        assert admin.post(page_of(facts[1], "undo_merge"), {"merge": str(made.pk)}).status_code == 302
        assert [now_of(fact).status for fact in facts] == ["active"] * 3
        assert now_of(facts[1]).content == "Has a peanut allergy"
        assert "Undo the merge" not in text_of(admin.get(page_of(facts[1])))

    def test_what_was_typed_is_kept_when_somebody_was_faster(
        self, admin: Client, administrator: Operator, facts: list[Fact]
    ) -> None:
        pin_fact(fact_id=facts[1].pk, actor=Actor.operator(administrator), now=NOW)
        response = confirm(admin, facts)
        assert response.status_code == 412
        page = text_of(response)
        assert "Allergic to peanuts, badly" in page
        assert f"{facts[1].pk}:2" in page
        assert confirm(admin, [now_of(fact) for fact in facts]).status_code == 302

    def test_what_was_typed_is_kept_when_one_is_gone_from_service(self, admin: Client, facts: list[Fact]) -> None:
        Fact.objects.filter(pk=facts[1].pk).update(status="trashed")
        response = confirm(admin, facts)
        assert response.status_code == 409
        assert "You typed: Allergic to peanuts, badly" in text_of(response)

    @pytest.mark.parametrize("over", [{"content": ""}, {"survivor": "nobody"}, {"expected": ["nonsense"]}], ids=str)
    def test_bad_input_changes_nothing(self, admin: Client, facts: list[Fact], over: dict[str, Any]) -> None:
        assert confirm(admin, facts, **over).status_code == 400
        assert not ChangeSet.objects.filter(verb="merge").exists()

    def test_the_undo_of_another_facts_merge_is_not_found(self, admin: Client, facts: list[Fact]) -> None:
        confirm(admin, facts[:2])
        made = ChangeSet.objects.get(verb="merge")
        assert admin.post(page_of(facts[2], "undo_merge"), {"merge": str(made.pk)}).status_code == 404
        assert now_of(facts[1]).status == "superseded"


class TestSplitting:
    @pytest.fixture
    def merged(self, admin: Client, facts: list[Fact]) -> list[Fact]:
        confirm(admin, facts[:2])
        return [now_of(fact) for fact in facts]

    def split(self, client: Client, facts: list[Fact], **over: Any) -> Any:
        form = {"version": facts[1].version, "survivor_version": facts[0].version, "rest": "Allergic to peanuts"}
        return client.post(page_of(facts[1], "split"), {**form, **over})

    def test_offers_what_the_other_said_before(self, admin: Client, merged: list[Fact]) -> None:
        page = text_of(admin.get(page_of(merged[1])))
        assert "Part of another fact" in page
        assert re.search(r"<textarea[^>]*>\s*Allergic to peanuts</textarea>", page)

    def test_makes_it_a_fact_of_its_own(self, admin: Client, merged: list[Fact]) -> None:
        assert self.split(admin, merged).status_code == 302
        assert (now_of(merged[1]).status, now_of(merged[0]).content) == ("active", "Allergic to peanuts")

    def test_looks_again_when_the_other_was_changed(
        self, admin: Client, administrator: Operator, merged: list[Fact]
    ) -> None:
        pin_fact(fact_id=merged[0].pk, actor=Actor.operator(administrator), now=NOW)
        response = self.split(admin, merged, rest="Typed in vain?")
        assert response.status_code == 412
        assert "Typed in vain?" in text_of(response)
        assert self.split(admin, [now_of(fact) for fact in merged]).status_code == 302

    def test_is_not_offered_of_other_facts(self, admin: Client, facts: list[Fact]) -> None:
        assert page_of(facts[0], "split") not in text_of(admin.get(page_of(facts[0])))


class TestWhoMay:
    def test_facts_beyond_their_tenants_are_as_if_they_were_not_there(self, facts: list[Fact]) -> None:
        client, foreign = signed_in(limited(facts[0].tenant)), factories.fact(factories.end_user(), "Somebody else's")
        trashed = factories.fact(foreign.end_user, "In their trash", status="trashed")
        nobody = Fact(pk=factories.tenant().pk, version=1)
        for form in (choose, lambda *given: confirm(given[0], list(given[1:]))):
            answers = [form(client, facts[0], other) for other in (foreign, trashed, nobody)]
            assert {answer.status_code for answer in answers} == {404}
            told = [
                text_of(answer).replace(str(one.pk), "")
                for answer, one in zip(answers, (foreign, trashed, nobody), strict=True)
            ]
            assert len({_plain(page) for page in told}) == 1
        # Neither by the versions that a form says it saw.
        pair = [*facts[:2]]
        for other in (foreign, trashed, nobody):
            seen = [f"{one.pk}:{one.version}" for one in (*pair, other)]
            assert confirm(client, pair, expected=seen).status_code == 404
        assert confirm(client, pair).status_code == 302


def _plain(page: str) -> str:
    """Without what differs from request to request."""
    return re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"|nonce="[^"]*"', "", page)
