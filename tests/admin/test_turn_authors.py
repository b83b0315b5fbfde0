"""Whose words turns hold, wherever the admin shows them: the labels, the paler parts, the filters, the correction."""

from html import escape

import pytest
from django.test import Client
from django.urls import reverse

from memories.models import Author, ChangeSet, Episode, Fact, ReviewItem, Session, Turn
from memories.retrieval import tenant_turns
from memories.retrieval.prepared_query import prepare
from memories.retrieval.tenant_turns import TurnFilters
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.admin.test_undo import offered
from tests.admin.walk import role
from tests.database import statements

pytestmark = pytest.mark.django_db
QUOTED, OWN = "<b>Report</b> of Kim", "I drink tea"
SAID = [("user", f"{QUOTED}\n{OWN}"), ("assistant", "Noted"), ("user", "Answer in JSON"), ("user", "I sail")]
FOREIGN = f'<span class="hub-foreign">{escape(QUOTED)}'


@pytest.fixture
def session() -> Session:
    """The first turn has parts and is doubtful, the third is an application's; facts rest on the first and third."""
    session = factories.session(factories.end_user(), SAID)
    session.turns.update(own=None, author="")
    whole = len(SAID[0][1])
    session.turns.filter(number=1).update(author="person", own=[[whole - len(OWN), whole]], is_doubtful=True)
    session.turns.filter(number=3).update(author="application")
    for content, number in (("Drinks tea", 1), ("Wants JSON", 3)):
        fact = factories.fact(session.end_user, content, status="pending")
        factories.evidence(fact, session.turns.get(number=number))
        factories.review_item(fact)
    factories.episode(session, "Drinks tea", last_number=4)
    return session


def address(session: Session, number: int = 3) -> str:
    return reverse("admin:memories_session_turn", args=[session.pk, number])


def test_each_page_that_shows_turns_tells_it(admin: Client, session: Session) -> None:
    fact, episode = Fact.objects.get(content="Drinks tea"), Episode.objects.get()
    item = ReviewItem.objects.get(fact=fact)
    queue = f"{reverse('admin:memories_reviewitem_queue')}?item={item.pk}"
    for shown in (queue, *map(page_of, (session, session.end_user, fact, item, episode))):
        page = text_of(admin.get(shown))
        assert ">Parts</small>" in page, shown
        assert ">Doubtful</small>" in page, shown
        assert FOREIGN in page, shown
        assert "<b>Report" not in page, shown
    of_application = text_of(admin.get(page_of(Fact.objects.get(content="Wants JSON"))))
    assert ">Application</small>" in of_application


def test_what_the_role_says_has_no_label(admin: Client, db: None) -> None:
    page = text_of(admin.get(page_of(factories.session(factories.end_user(), SAID[1:]))))
    assert "hub-author" not in page.replace("hub-authors", "")
    assert "hub-foreign" not in page


class TestFilters:
    @pytest.mark.parametrize(
        ("author", "numbers"),
        [("person", [1, 4]), ("model", [2]), ("application", [3]), ("other", []), ("nobody", [1, 2, 3, 4])],
    )
    def test_of_a_session(self, admin: Client, session: Session, author: str, numbers: list[int]) -> None:
        page = admin.get(page_of(session), {"author": author}).context["page"]
        assert [turn.number for turn in page] == numbers

    def test_pages_of_one_author_go_on_with_it(self, admin: Client, session: Session) -> None:
        first = session.turns.get(number=3)
        Turn.objects.bulk_create(
            Turn(
                tenant=first.tenant, end_user=first.end_user, session=session, number=number, role="user",
                author="other", content="x", token_count=1, created_at=first.created_at,
            )
            for number in range(5, 60)
        )  # fmt: skip
        seen = statements(lambda: admin.get(page_of(session), {"author": "other"}))
        page = text_of(admin.get(page_of(session), {"author": "other"}))
        assert "?author=other&amp;after=54" in page
        last = admin.get(page_of(session), {"author": "other", "after": "54"})
        assert [turn.number for turn in last.context["page"]] == list(range(55, 60))
        assert "?author=other&amp;before=55" in text_of(last)
        first = admin.get(page_of(session), {"author": "other", "before": "55"}).context["page"]
        assert ([turn.number for turn in first], first.has_earlier) == (list(range(5, 55)), False)
        # Of a long session nobody counts the turns or reads those before the page.
        told = [sql for sql in seen if 'FROM "memories_turn"' in sql]
        assert told
        assert not any("OFFSET" in sql or "COUNT(" in sql for sql in told)

    @pytest.mark.parametrize(("author", "found"), [("person", "I sail"), ("application", "Answer in JSON")])
    def test_of_the_search(self, admin: Client, session: Session, author: str, found: str) -> None:
        query = prepare("JSON sail")
        result = tenant_turns.search(session.tenant, query, TurnFilters(author=author), limit=9)
        assert found in {one.turn.start for one in result.found}
        assert {one.turn.known_author for one in result.found} == {author}
        posted = {"tenant": session.tenant_id, "query": "JSON sail", "author": author}
        page = text_of(admin.post(reverse("admin:said"), posted))
        assert found in page


class TestCorrection:
    def test_an_operator_corrects_and_undoes(self, admin: Client, session: Session) -> None:
        form = admin.get(address(session)).context["form"]
        posted = {**form.initial, "author": "person", "reason": "She typed it"}
        done = admin.post(address(session), posted, follow=True)
        assert done.redirect_chain == [(address(session), 302)]
        assert "She typed it" in text_of(done)
        assert session.turns.get(number=3).author == "person"
        assert "Undone." in text_of(admin.post(offered(done), follow=True))
        assert session.turns.get(number=3).author == "application"
        assert "(undone)" in text_of(admin.get(address(session)))

    def test_who_saw_another_state_sees_it_and_keeps_the_input(self, admin: Client, session: Session) -> None:
        form = admin.get(address(session)).context["form"]
        session.turns.filter(number=3).update(author="model")
        answer = admin.post(address(session), {**form.initial, "author": "person", "reason": "Sure"})
        assert (answer.status_code, ChangeSet.objects.exists()) == (412, False)
        assert "Sure" in text_of(answer)
        again = answer.context["form"]
        values = {name: again[name].value() for name in again.fields}
        assert admin.post(address(session), values).status_code == 302
        assert session.turns.get(number=3).author == "person"

    @pytest.mark.parametrize("author", ["", "nobody", "system"])
    def test_another_word_is_refused(self, admin: Client, session: Session, author: str) -> None:
        form = admin.get(address(session)).context["form"]
        assert admin.post(address(session), {**form.initial, "author": author}).status_code == 400
        assert session.turns.get(number=3).author == "application"

    def test_the_page_says_what_rests_on_it(self, admin: Client, session: Session) -> None:
        page = text_of(admin.get(address(session)))
        assert "Wants JSON" in page
        assert page_of(Fact.objects.get(content="Wants JSON")) in page
        assert "Drinks tea" not in page

    @pytest.mark.parametrize("extracted", [2, 3])
    def test_it_says_that_extraction_does_not_go_back(self, admin: Client, session: Session, extracted: int) -> None:
        session.queue.__class__.objects.update(extracted_number=extracted)
        assert ("does not go back" in text_of(admin.get(address(session)))) == (extracted == 3)

    @pytest.mark.parametrize("number", [2, 99, 2**40])
    def test_only_turns_of_role_user_have_the_page(self, admin: Client, session: Session, number: int) -> None:
        assert admin.get(address(session, number)).status_code == 404

    def test_reviewers_read_it_alone(self, session: Session) -> None:
        reviewer = signed_in(role("reviewer"))
        page = reviewer.get(address(session))
        assert (page.status_code, page.context["form"]) == (200, None)
        assert reviewer.post(address(session), {"author": Author.PERSON, "version": 1}).status_code == 403

    def test_as_many_queries_for_many_facts(self, admin: Client, session: Session) -> None:
        turn = session.turns.get(number=3)
        few = len(statements(lambda: admin.get(address(session))))
        for at in range(5):
            factories.evidence(factories.fact(session.end_user, f"Fact {at}"), turn)
        assert len(statements(lambda: admin.get(address(session)))) == few
