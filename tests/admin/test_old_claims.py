"""The page after a correction: what still says it, mended with one press, and the next context before and after."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from memories.models import EndUser, Fact, ProfileSection, Turn
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import HOSTILE, page_of, queries_of, shows_harmless, text_of
from tests.admin.test_undo import CORRECTED, offered

pytestmark = pytest.mark.django_db
FORM = re.compile(r'name="kind" value="(\w+)"><input type="hidden" name="memory" value="([\w-]+)">.*?value="(\d+)">')


@pytest.fixture
def fact(person: EndUser) -> Fact:
    factories.profile_section(person, summary="A baker from Leiden.")
    return factories.fact(person, "Lives in Leiden")


def correct(client: Client, fact: Fact) -> Any:
    return client.post(page_of(fact, "correct"), {"version": fact.version, **CORRECTED})


def replace(client: Client, fact: Fact, page: Any, text: str, **over: Any) -> Any:
    kind, memory, version = FORM.findall(text_of(page))[0]
    given = {"kind": kind, "memory": memory, "version": version, "how": "replace", "text": text, **over}
    return client.post(page_of(fact, "old_claims"), given)


def test_a_correction_leads_to_what_still_says_it(admin: Client, fact: Fact) -> None:
    page = correct(admin, fact)
    shown = text_of(page)
    assert page.status_code == 200
    assert "A baker from <del>Leiden</del><ins>Utrecht</ins>." in shown
    # The next context, before and after the correction.
    assert re.search(r"Lives in <del>Leiden</del><ins>Utrecht</ins>|<del>.*Lives in Leiden.*</del>", shown, re.DOTALL)
    assert offered(page)


def test_without_anything_left_it_leads_to_the_fact(admin: Client) -> None:
    fact = factories.fact(factories.end_user(), "Lives in Leiden")
    assert correct(admin, fact).headers["Location"] == page_of(fact)
    assert "No other memory has the old claim" in text_of(admin.get(page_of(fact, "old_claims")))


def test_forgetting_leads_to_what_still_says_it(admin: Client, fact: Fact) -> None:
    page = admin.post(page_of(fact, "forget"), {"version": fact.version, "reason": ""})
    shown = text_of(page)
    assert page.status_code == 200
    assert "A baker from Leiden." in shown
    # There are no new words.
    assert "Save the text" in shown
    assert "<textarea" in shown
    assert ">A baker from Leiden.</textarea>" not in shown
    assert offered(page)
    fact.refresh_from_db()
    assert page_of(fact, "old_claims") in text_of(admin.get(page_of(fact)))
    admin.post(page_of(fact, "restore"), {"version": fact.version, "reason": ""})
    assert admin.get(page_of(fact, "old_claims")).status_code == 302


def test_a_list_of_an_episode_is_named_and_its_lines_are_cut_out(admin: Client, fact: Fact) -> None:
    session = factories.session(fact.end_user, [("user", "Hm")])
    episode = factories.episode(session, "Talked about moving", outcomes=["Found a flat in Leiden", "Booked a table"])
    shown = text_of(correct(admin, fact))
    assert "<bdi>Outcomes</bdi>" in shown
    assert "Found a flat in <del>Leiden</del><ins>Utrecht</ins>" in shown
    given = {"kind": "episode", "memory": episode.pk, "version": episode.version, "how": "drop", "field": "outcomes"}
    cut = admin.post(page_of(fact, "old_claims"), given)
    assert "The lines are cut out." in text_of(cut)
    episode.refresh_from_db()
    assert (episode.status, episode.outcomes) == ("active", ["Booked a table"])
    admin.post(offered(cut))
    episode.refresh_from_db()
    assert len(episode.outcomes) == 2
    assert admin.post(page_of(fact, "old_claims"), {**given, "field": "flaws"}).status_code == 400


class TestTurns:
    """The page counts the turns that say it, and redacts those that are chosen."""

    @pytest.fixture
    def turns(self, fact: Fact) -> list[Turn]:
        talk = factories.session(fact.end_user, [("user", "I live in Leiden. I like tea."), ("user", "Leiden? No.")])
        return list(talk.turns.order_by("number"))

    @pytest.mark.parametrize("verb", ["correct", "forget"])
    def test_they_are_counted_after_each(self, admin: Client, fact: Fact, turns: list[Turn], verb: str) -> None:
        given = CORRECTED if verb == "correct" else {"reason": ""}
        shown = text_of(admin.post(page_of(fact, verb), {"version": fact.version, **given}))
        assert "Turns that say it" in shown
        assert ">1 turn<" in shown
        assert "<q>I live in Leiden.</q>" in shown
        assert "<q>Leiden? No.</q>" not in shown

    def test_without_other_memories_too(self, admin: Client, fact: Fact, turns: list[Turn]) -> None:
        ProfileSection.objects.all().delete()
        assert "Turns that say it" in text_of(correct(admin, fact))

    def test_the_chosen_ones_are_redacted_once_somebody_is_sure(
        self, admin: Client, fact: Fact, turns: list[Turn]
    ) -> None:
        correct(admin, fact)
        address, given = page_of(fact, "old_claims"), {"redact": "1", "turn": turns[0].pk}
        for wrong in (given, {"redact": "1", "is_sure": "on"}, {**given, "turn": turns[1].pk, "is_sure": "on"}):
            assert admin.post(address, wrong).status_code == 400
        turns[0].refresh_from_db()
        assert turns[0].content == "I live in Leiden. I like tea."
        page = text_of(admin.post(address, {**given, "is_sure": "on"}))
        assert "1 turn is redacted." in page
        assert "Turns that say it" not in page
        turns[0].refresh_from_db()
        assert turns[0].content == "[redacted] I like tea."

    def test_a_fact_that_goes_with_them_leads_to_its_person(self, admin: Client, fact: Fact, turns: list[Turn]) -> None:
        factories.evidence(fact, turns[0], "I live in Leiden.")
        admin.post(page_of(fact, "forget"), {"version": fact.version, "reason": ""})
        given = {"redact": "1", "turn": turns[0].pk, "is_sure": "on"}
        page = admin.post(page_of(fact, "old_claims"), given)
        assert page.headers["Location"] == page_of(fact.end_user)

    def test_who_may_not_see_conversations_sees_their_number_alone(
        self, staff_who_may: Callable[..., Client], fact: Fact, turns: list[Turn]
    ) -> None:
        shown = text_of(correct(staff_who_may("view_fact", "change_fact"), fact))
        assert ">1 turn<" in shown
        assert "I live in Leiden" not in shown
        reader = staff_who_may("view_fact", "change_fact", "view_session")
        assert "<q>I live in Leiden.</q>" in text_of(reader.get(page_of(fact, "old_claims")))
        given = {"redact": "1", "turn": turns[0].pk, "is_sure": "on"}
        assert reader.post(page_of(fact, "old_claims"), given).status_code == 403


def test_one_press_mends_one_and_shows_the_context_before_and_after(admin: Client, fact: Fact) -> None:
    mended = replace(admin, fact, correct(admin, fact), "A baker from Utrecht.")
    assert ProfileSection.objects.get().summary == "A baker from Utrecht."
    shown = text_of(mended)
    assert "before and after" in shown
    assert "<del>Leiden</del><ins>Utrecht</ins>" in shown
    back = admin.post(offered(mended), follow=True)
    assert ProfileSection.objects.get().summary == "A baker from Leiden."
    assert "Undone." in text_of(back)


def test_a_stale_or_foreign_form_changes_nothing(admin: Client, fact: Fact) -> None:
    page = correct(admin, fact)
    stale = replace(admin, fact, page, "A baker.", version="77")
    assert stale.status_code == 412
    assert "Somebody else changed this" in text_of(stale)
    other = factories.profile_section(factories.end_user(fact.tenant), summary="Bakes in Leiden.")
    assert replace(admin, fact, page, "A baker.", memory=other.pk, version=other.version).status_code == 404
    assert replace(admin, fact, page, "A baker.", memory="nonsense").status_code == 400
    assert replace(admin, fact, page, "A\x00baker.").status_code == 400
    assert set(ProfileSection.objects.values_list("summary", flat=True)) == {"A baker from Leiden.", "Bakes in Leiden."}


def test_another_operators_mend_is_not_undone_here(admin: Client, fact: Fact) -> None:
    address = offered(replace(admin, fact, correct(admin, fact), "A baker from Utrecht."))
    assert signed_in(factories.operator()).post(address).status_code == 404
    assert ProfileSection.objects.get().summary == "A baker from Utrecht."


def test_who_may_change_facts_alone_mends_no_profile(staff_who_may: Callable[..., Client], fact: Fact) -> None:
    client = staff_who_may("view_fact", "change_fact")
    page = correct(client, fact)
    assert "cannot change it" in text_of(page)
    assert "The next context" not in text_of(page)
    row = ProfileSection.objects.get()
    given = {"kind": "section", "memory": row.pk, "version": row.version, "how": "replace", "text": "A baker."}
    assert client.post(page_of(fact, "old_claims"), given).status_code == 403
    assert ProfileSection.objects.get().summary == "A baker from Leiden."


def test_files_triples_and_notes_are_offered_to_who_may_change_them(
    admin: Client, staff_who_may: Callable[..., Client], fact: Fact
) -> None:
    person = fact.end_user
    file = factories.memory_file(person, "/memories/trip.md", "Leiden\n", agent_id="sales")
    triple = factories.triple(person, "Ann", "lives_in", "Leiden")
    entry = factories.diary_entry(person, "Asked about Leiden")
    shown = text_of(correct(admin, fact))
    for said in (
        "/memories/trip.md · sales",
        "Ann lives in Leiden",
        "Asked about Leiden",
        *map(page_of, (file, triple, entry)),
    ):
        assert said in shown
    address = page_of(fact, "old_claims")
    given = {"kind": "triple", "memory": triple.pk, "version": triple.version, "how": "drop"}
    reader = staff_who_may("view_fact", "change_fact", "view_graphtriple")
    assert reader.post(address, given).status_code == 403
    assert admin.post(address, {**given, "how": "replace", "text": "Ann lives in Utrecht"}).status_code == 404
    gone = admin.post(address, given)
    assert "Ann lives in Leiden" not in text_of(gone)
    admin.post(offered(gone))
    triple.refresh_from_db()
    assert triple.status == "active"
    assert "Ann lives in Leiden" in text_of(admin.get(address))


def test_a_script_beside_a_search_hit_gets_the_way_back(admin: Client, fact: Fact) -> None:
    given = {"version": fact.version, **CORRECTED}
    answer = admin.post(page_of(fact, "correct"), given, headers={"X-Fragment": "verb"})
    assert (answer.status_code, answer.headers["Location"]) == (302, page_of(fact))


def test_hostile_texts_and_many_memories(admin: Client, fact: Fact) -> None:
    factories.fact(fact.end_user, f"Leiden {HOSTILE}")
    correct(admin, fact)
    assert shows_harmless(admin.get(page_of(fact, "old_claims")), "onerror=alert(1)>{{ 7|add:7 }}")
    few = queries_of(admin, page_of(fact, "old_claims"))
    for number in range(60):
        factories.fact(fact.end_user, f"Walked through Leiden {number}")
    assert queries_of(admin, page_of(fact, "old_claims")) == few
    assert "And 12 more." in text_of(admin.get(page_of(fact, "old_claims")))
