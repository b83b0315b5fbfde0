"""What an agent sees now: the very context that the API gives, and a look that leaves no trace."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.admin.recall.live_context import LiveContext
from memories.context import context
from memories.context.context import ContextRequest
from memories.context.parts import DEFAULT_INCLUDE
from memories.models import AuditEvent, EndUser, Episode, Fact, ProfileRevision
from memories.retrieval import recalls
from tests import factories
from tests.admin.pages import page_of, text_of

pytestmark = pytest.mark.django_db
ALL = ("view_enduser", "view_fact", "view_episode", "view_session")
QUESTION = "Where does she live?"


@pytest.fixture
def person() -> EndUser:
    person = factories.end_user(external_id="usr_1000", display_name="华桂珍")
    session = factories.session(person, [("user", "I live in Leiden"), ("assistant", "Noted.")], agent_id="coach")
    factories.fact(person, "Lives in Leiden")
    factories.fact(person, "Tells the coach alone", agent_id="coach")
    factories.episode(session, "Told where she lives")
    factories.profile_section(person, summary="Runs a bakery.")
    return person


def state_of(person: EndUser) -> str:
    return reverse("admin:memories_enduser_seen", args=[person.pk])


def ask(client: Client, person: EndUser, **over: Any) -> Any:
    form = {"query": "", "agent": "", "session": "", "max_tokens": "2000", **over}
    return client.post(state_of(person), form)


def live_context_of(response: Any) -> LiveContext:
    live: LiveContext = response.context_data["live"]
    return live


def texts(response: Any) -> set[str]:
    return {memory.text for memory in live_context_of(response).included}


def test_it_is_what_the_api_answers(admin: Client, person: EndUser) -> None:
    shown = live_context_of(admin.get(state_of(person))).context
    request = ContextRequest(user_id="usr_1000")
    built = context.build(tenant=person.tenant, request=request, now=timezone.now(), noted=False)
    assert (shown.memory, shown.token_count) == (built.memory, built.token_count)
    assert built.memory


def test_each_memory_is_a_link_with_its_tokens(admin: Client, person: EndUser) -> None:
    response = admin.get(state_of(person))
    page, live = text_of(response), live_context_of(response)
    fact = Fact.objects.get(content="Lives in Leiden")
    for address in (page_of(fact), page_of(Episode.objects.get()), f"{reverse('admin:index')}memories/enduser"):
        assert address in page
    told = {memory.id: memory for memory in live.included}
    assert told[fact.pk].tokens == next(one["tokens"] for one in live.context.items if one["id"] == str(fact.pk))
    assert f"{live.context.token_count} of 2000 tokens" in page


def test_an_agent_sees_its_own(admin: Client, person: EndUser) -> None:
    assert "Tells the coach alone" not in texts(ask(admin, person))
    assert "Tells the coach alone" in texts(ask(admin, person, agent="coach"))


def test_a_conversation_brings_its_agent_and_its_window(admin: Client, person: EndUser) -> None:
    talk = person.sessions.get()
    response = ask(admin, person, session=str(talk.pk))
    assert "Tells the coach alone" in texts(response)
    messages = live_context_of(response).context.messages or []
    assert messages[-1]["content"] == "Noted."
    # The window shows these turns: their episode is told nowhere else.
    assert "Told where she lives" in texts(ask(admin, person))


def test_a_question_recalls_turns(admin: Client, person: EndUser) -> None:
    asked = ask(admin, person, query=QUESTION)
    assert live_context_of(asked).context.items
    built = context.build(
        tenant=person.tenant,
        request=ContextRequest(user_id="usr_1000", query=QUESTION, include=DEFAULT_INCLUDE),
        now=timezone.now(),
        noted=False,
    )
    assert live_context_of(asked).context.memory == built.memory


def test_a_look_leaves_no_trace(admin: Client, person: EndUser) -> None:
    recalls.flush(now=timezone.now())
    ask(admin, person, query=QUESTION)
    assert recalls.flush(now=timezone.now()) == 0
    assert not Fact.objects.exclude(last_recalled_at=None).exists()
    assert not AuditEvent.objects.exists()
    # The same question of an agent is noted.
    asked = ContextRequest(user_id="usr_1000", query=QUESTION)
    context.build(tenant=person.tenant, request=asked, now=timezone.now())
    assert recalls.flush(now=timezone.now()) > 0


def test_at_a_moment_it_is_what_held_then_with_what_was_served(
    admin: Client, staff_who_may: Callable[..., Client]
) -> None:
    person, now = factories.end_user(external_id="u-1"), timezone.now()
    moved, day_before = now - timedelta(days=10), now - timedelta(days=11)
    factories.fact(person, "Lives in Leiden", valid_from=now - timedelta(days=30), valid_to=moved, status="superseded")
    factories.fact(person, "Lives in Delft", valid_from=moved)
    section = factories.profile_section(person, summary="Runs a bakery in Delft.")
    earlier = day_before - timedelta(hours=1)
    for version, at, text in ((1, earlier, "Runs a bakery in Leiden."), (2, moved, "Runs a bakery in Delft.")):
        ProfileRevision.objects.create(
            tenant=person.tenant, end_user=person, section=section.section, version=version, created_at=at, after=text
        )
    first, last = (factories.logged_context(person, created_at=day_before - timedelta(hours=ago)) for ago in (9, 2))
    factories.logged_context(person, created_at=moved)
    then, today = ask(admin, person, as_of=f"{day_before:%Y-%m-%dT%H:%M}"), ask(admin, person)
    assert (texts(then), texts(today) & {"Lives in Leiden"}) == ({"Lives in Leiden"}, set())
    assert "Runs a bakery in Leiden." in text_of(then)
    assert page_of(last) in text_of(then)
    assert page_of(first) not in text_of(then)
    assert "What was served" not in text_of(today)
    # An address can name it, too; a day is its end.
    assert texts(admin.get(f"{state_of(person)}?as_of={day_before:%Y-%m-%d}")) == {"Lives in Leiden"}
    nothing = text_of(ask(admin, person, as_of="2020-01-01"))
    assert "No context was logged" in nothing
    # The log has a permission of its own.
    without = text_of(ask(staff_who_may(*ALL), person, as_of=f"{day_before:%Y-%m-%dT%H:%M}"))
    assert page_of(last) not in without
    assert "may not see the log" in without


def test_what_has_no_room_is_told_with_its_reason(admin: Client, person: EndUser) -> None:
    response = ask(admin, person, max_tokens="60")
    live = live_context_of(response)
    assert {memory.reason for memory in live.left_out} == {"budget"}
    assert all(memory.text for memory in live.left_out)
    assert "no room left" in text_of(response)


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ({"restricted_at": factories.NOW}, "is restricted"),
        ({"serve": False}, "switched off"),
        ({}, "no memories of this person that can be served"),
    ],
)
def test_an_empty_context_says_why(admin: Client, over: dict[str, Any], said: str) -> None:
    person = factories.end_user(**over)
    assert said in text_of(admin.get(state_of(person)))


def test_too_small_a_budget_says_so(admin: Client, person: EndUser) -> None:
    assert "too small for the first line" in text_of(ask(admin, person, max_tokens="1"))


def test_bad_input_is_refused(admin: Client, person: EndUser) -> None:
    for fault in (
        {"max_tokens": "8001"}, {"max_tokens": "x"}, {"agent": "nobody"}, {"session": "nobody"}, {"query": "x" * 4001},
        {"query": "a\x00b"}, {"as_of": "yesterday"}, {"as_of": "2999-01-01T10:00"}, {"as_of": "0001-01-01T00:00"},
        {"as_of": "9999-12-31"},
    ):  # fmt: skip
        response = ask(admin, person, **fault)
        assert (response.status_code, "live" in response.context_data) == (400, False), fault


def test_the_question_is_in_no_address(admin: Client, person: EndUser) -> None:
    response = ask(admin, person, query="Her secret plans")
    assert response.status_code == 200
    assert "Her secret plans" in text_of(response)
    assert "plans" not in state_of(person)
    assert "Her secret plans" not in text_of(admin.get(f"{state_of(person)}?query=Her+secret+plans"))


def test_a_fragment_is_given_to_a_script(admin: Client, person: EndUser) -> None:
    form = {"query": QUESTION, "agent": "", "session": "", "max_tokens": "2000"}
    fragment = text_of(admin.post(state_of(person), form, headers={"X-Fragment": "seen"}))
    assert "<html" not in fragment
    assert "&lt;memory&gt;" in fragment


def test_a_public_fact_of_another_person_says_so(admin: Client, person: EndUser) -> None:
    other = factories.end_user(person.tenant)
    fact = factories.fact(other, "The office is closed on Friday", scope="public")
    page = text_of(admin.get(state_of(person)))
    assert page_of(fact) in page
    assert "public, of another person" in page


def test_it_needs_all_permissions(person: EndUser, staff_who_may: Callable[..., Client]) -> None:
    assert ask(staff_who_may(*ALL), person).status_code == 200
    for missing in ALL:
        assert ask(staff_who_may(*set(ALL) - {missing}), person).status_code == 403
