"""Dreams whose worker dies, and dreams while others act on the same person: the others are on connections of their own.

Killed anywhere a dream is applied whole or not at all, and never twice.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from memories import invariants
from memories.audit import Actor
from memories.curation.files import FileWriter, NewContent, write_file
from memories.curation.people.merging.merge import merge_people
from memories.curation.sessions import delete_session
from memories.dream import applying, deciding, dreaming, unread
from memories.exceptions import LeaseLost
from memories.llm import client
from memories.models import (
    ActorKind,
    Dream,
    DreamedEpisode,
    DreamEdit,
    EndUser,
    Episode,
    FileVersion,
    MemoryFile,
    ModelUse,
)
from memories.queue import leases, spending
from tests import factories
from tests.database import at_once, elsewhere
from tests.dream.dreaming import begin, dreamer, edit, edits, episodes, states, text_of
from tests.factories import NOW
from tests.model import Model

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("model")]
OPERATOR = Actor(kind=ActorKind.OPERATOR, id="1")
ANSWER = edits(edit("USER.md", "Delft", "Leiden"), edit("USER.md", "", "Rows\n"), edit("SOUL.md", "", "Is brief\n"))
AFTER = ("Lives in Leiden\nRows\n", "Is brief\n")
BEFORE = ("Lives in Delft\n", None)


class Killed(BaseException):
    """As by kill -9: nothing that the code does about errors."""


@pytest.fixture
def person(transactional_db: None) -> EndUser:
    person = dreamer()
    factories.memory_file(person, "/USER.md", "Lives in Delft\n", agent_id="bot")
    episodes(person, "Moved to Leiden", "Took up rowing")
    return person


def files(person: EndUser) -> tuple[str | None, str | None]:
    return text_of(person, "/USER.md"), text_of(person, "/SOUL.md")


def broken() -> list[str]:
    """What must hold between rows and does not; the episodes were made without a window."""
    return [one.name for one in invariants.check() if one.name != "episodes_below"]


def has_nothing_of_it(person: EndUser) -> bool:
    written = DreamEdit.objects.exists() or DreamedEpisode.objects.exists() or FileVersion.objects.count() != 1
    return files(person) == BEFORE and not written


def dying(function: Callable[..., Any], *, after: bool = False, call: int = 1) -> Callable[..., Any]:
    """The function, that ends its process before this call of it, or after."""
    calls = 0

    def act(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call and not after:
            raise Killed
        found = function(*args, **named)
        if calls == call:
            raise Killed
        return found

    return act


# Where the worker dies: the owner of a name, the name, whether it dies after the call, and at which one.
PLACES: list[tuple[Any, str, bool, int]] = [
    (unread, "next_episodes", True, 1),
    (client, "complete", False, 1),
    (client, "complete", True, 1),
    (spending, "count", True, 1),
    (dreaming, "lock_person", True, 1),
    (applying, "apply", False, 1),
    (FileVersion.objects, "create", True, 1),
    (FileVersion.objects, "create", True, 2),
    (applying, "apply", True, 1),
    (dreaming, "_note_read", False, 1),
    (dreaming, "_note_read", True, 1),
    (DreamEdit.objects, "bulk_create", True, 1),
    (dreaming, "_end", True, 1),
    (spending, "note", True, 1),
]


@pytest.mark.parametrize(
    ("owner", "name", "after", "call"), PLACES, ids=[f"{p[1]}-{'after' if p[2] else 'before'}-{p[3]}" for p in PLACES]
)
def test_killed_anywhere_it_is_applied_once_and_whole(
    person: EndUser, model: Model, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, after: bool, call: int
) -> None:
    model.answers += [ANSWER, ANSWER]
    row = begin(person)
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, dying(getattr(owner, name), after=after, call=call))
        with pytest.raises(Killed):
            dreaming.run(row, now=NOW)
    assert has_nothing_of_it(person)
    assert Dream.objects.get().state == "running"
    # The lease of a dead worker ends by itself; nobody takes the dream before that.
    dreaming.run_slice(now=NOW, seconds=300)
    assert has_nothing_of_it(person)
    Dream.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    dreaming.run_slice(now=NOW, seconds=300)
    dreaming.run_slice(now=NOW + timedelta(days=1), seconds=300)
    row.refresh_from_db()
    assert (row.state, files(person)) == ("applied", AFTER)
    assert (Dream.objects.count(), DreamEdit.objects.count(), DreamedEpisode.objects.count()) == (1, 3, 2)
    assert FileVersion.objects.filter(change_set=row.pk).count() == 2
    assert ModelUse.objects.get().calls == 1
    assert not broken()


def test_one_that_ends_its_workers_is_given_up(person: EndUser, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    row = begin(person)
    for attempt in range(leases.MOST_ATTEMPTS):
        monkeypatch.setattr(client, "complete", dying(lambda **_: None))
        with pytest.raises(Killed):
            dreaming.run(row, now=NOW)
        Dream.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        assert Dream.objects.get().attempts == attempt + 1
    dreaming.run(row, now=NOW)
    row.refresh_from_db()
    assert (row.state, row.failure) == ("failed", "worker_lost")
    assert has_nothing_of_it(person)


def test_two_workers_at_once_carry_out_one(person: EndUser, model: Model) -> None:
    model.answers += [ANSWER, ANSWER]
    row = begin(person)
    assert at_once(2, lambda _: dreaming.run(Dream.objects.get(pk=row.pk), now=NOW)) == [None, None]
    assert len(model.prompts) == 1
    assert files(person) == AFTER
    assert DreamEdit.objects.count() == 3


def test_two_looks_at_once_begin_one(person: EndUser, model: Model) -> None:
    model.answers += [ANSWER, ANSWER]
    at_once(2, lambda _: dreaming.run_slice(now=NOW, seconds=300))
    assert (Dream.objects.count(), files(person)) == (1, AFTER)


def test_a_worker_that_was_late_writes_nothing(person: EndUser, model: Model) -> None:
    """Its lease was over, and another one has finished meanwhile."""

    def answered() -> dict[str, Any]:
        assert not connection.in_atomic_block, "no transaction is open while the model is asked"
        Dream.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        elsewhere(lambda: dreaming.run(Dream.objects.get(), now=NOW))
        return edits(edit("USER.md", "", "Too late\n"))

    model.answers += [answered, ANSWER]
    with pytest.raises(LeaseLost):
        dreaming.run(begin(person), now=NOW)
    assert files(person) == AFTER
    assert DreamEdit.objects.count() == 3


def restrict(person: EndUser) -> None:
    EndUser.objects.filter(pk=person.pk).update(restricted_at=NOW)


def erase(person: EndUser) -> None:
    """As the first step of an erasure does."""
    with transaction.atomic():
        Dream.objects.filter(end_user=person).abandon()
        EndUser.objects.filter(pk=person.pk).update(generation=F("generation") + 1, restricted_at=NOW)


def generation(person: EndUser) -> None:
    EndUser.objects.filter(pk=person.pk).update(generation=F("generation") + 1)


def merge(person: EndUser) -> None:
    other = factories.end_user(person.tenant)
    merge_people(survivor=other.pk, merged=person.pk, actor=OPERATOR, now=NOW)


def forget_session(person: EndUser) -> None:
    delete_session(session_id=person.sessions.get().pk, tenant=None, actor=OPERATOR, now=NOW)


def correct(person: EndUser) -> None:
    Episode.objects.filter(summary="Moved to Leiden").update(version=F("version") + 1)


@pytest.mark.parametrize("act", [restrict, erase, generation, merge, forget_session, correct])
def test_of_what_changed_while_the_model_was_asked_nothing_is_written(
    person: EndUser, model: Model, act: Callable[[EndUser], None]
) -> None:
    def answered() -> dict[str, Any]:
        elsewhere(lambda: act(person))
        return ANSWER

    model.answers.append(answered)
    row = begin(person)
    # Whoever ended the dream took its lease.
    with suppress(LeaseLost):
        dreaming.run(row, now=NOW)
    row.refresh_from_db()
    assert (row.state, row.summary) == ("failed", "")
    assert row.failure in ("person_changed", "episodes_changed")
    assert not DreamEdit.objects.exists()
    assert not DreamedEpisode.objects.exists()
    assert FileVersion.objects.count() == 1
    assert not broken()


def test_an_edit_meets_the_file_as_it_is_by_then(person: EndUser, model: Model) -> None:
    def answered() -> dict[str, Any]:
        content = NewContent("Lives in Paris\n", "utf-8", 15)
        writer = FileWriter(Actor(kind=ActorKind.KEY, id="k"), NOW)
        given: dict[str, Any] = {"agent_id": "bot", "path": "/USER.md", "content": content, "writer": writer}
        elsewhere(lambda: write_file(end_user=person, **given))
        return ANSWER

    model.answers.append(answered)
    row = begin(person)
    dreaming.run(row, now=NOW)
    assert files(person) == ("Lives in Paris\nRows\n", "Is brief\n")
    assert states(row) == [("refused", "text_not_found"), ("applied", ""), ("applied", "")]


def test_two_approvals_at_once_apply_once(person: EndUser, model: Model) -> None:
    factories.set_numbers(person.tenant, dreams_wait=True)
    model.answers.append(ANSWER)
    row = begin(person)
    dreaming.run(Dream.objects.get(), now=NOW)

    def approve(_: int) -> Dream:
        return deciding.approve(dream_id=row.pk, accepted=[1, 2, 3], actor=OPERATOR, now=NOW, expected_version=1)

    outcomes = at_once(2, approve)
    assert sorted(type(one).__name__ for one in outcomes) == ["Dream", "PreconditionFailed"]
    assert files(person) == AFTER
    assert MemoryFile.objects.get(path="/USER.md").version == 2
