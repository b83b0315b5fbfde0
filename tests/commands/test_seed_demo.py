"""seed_demo: finished rows into an empty database, and nothing into any other."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memories.context.context import ContextRequest, build
from memories.context.parts import DEFAULT_INCLUDE
from memories.curation.access.keys import authenticate_key
from memories.models import (
    Agent,
    DiaryEntry,
    Dream,
    DreamedEpisode,
    DreamEdit,
    EndUser,
    Episode,
    Fact,
    FactRefusal,
    GraphTriple,
    GroupFact,
    MemoryFile,
    MemoryGroup,
    Operator,
    Session,
    SessionQueue,
    Status,
    StoreItem,
    Tenant,
    Turn,
    WorkingMemory,
)
from memories.models.memories.episodes import LONGEST_SUMMARY
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def home(tmp_path: Path, settings: Any) -> Path:
    settings.HOME = tmp_path
    return tmp_path


def test_an_empty_database_gets_a_person_a_sign_in_and_a_key_that_work(home: Path) -> None:
    call_command("seed_demo")
    access = json.loads((home / "demo.json").read_text(encoding="utf-8"))
    assert (home / "demo.json").stat().st_mode & 0o777 == 0o600
    assert Operator.objects.get(username=access["username"]).check_password(access["password"])
    key = authenticate_key(plaintext=access["api_key"], now=timezone.now())
    assert key
    assert key.tenant.end_users.get().external_id == access["user_id"]


def test_its_agents_are_listed(home: Path) -> None:
    call_command("seed_demo")
    agents = set(Agent.objects.values_list("agent_id", flat=True))
    assert agents == set(Session.objects.values_list("agent_id", flat=True))
    assert len(agents) == 2


def test_the_demo_arms_nothing(home: Path) -> None:
    call_command("seed_demo")
    assert SessionQueue.objects.count() == 2
    assert not SessionQueue.objects.exclude(due_at=None).exists()
    for queue in SessionQueue.objects.select_related("session"):
        assert queue.extracted_number == queue.session.turn_count == Turn.objects.filter(session=queue.session).count()


def test_every_fact_has_evidence_and_the_quote_is_in_its_turn(home: Path) -> None:
    call_command("seed_demo")
    for fact in Fact.objects.all():
        evidence = fact.evidence.get()
        assert evidence.turn
        assert evidence.quote in evidence.turn.content
        assert fact.revisions.exists()


def test_its_episodes_tell_of_all_turns_and_nothing_is_left_to_sum_up(home: Path) -> None:
    call_command("seed_demo")
    assert Episode.objects.count() == 3
    for session in Session.objects.all():
        ranges = session.episodes.order_by("first_number").values_list("first_number", "last_number")
        numbers = [number for first, last in ranges for number in range(first, last + 1)]
        assert numbers == list(range(1, session.turn_count + 1))
        memory = WorkingMemory.objects.get(session=session)
        assert (memory.episode_number, memory.due_at) == (session.turn_count, None)
    for episode in Episode.objects.all():
        assert len(episode.summary) <= LONGEST_SUMMARY


def test_the_demo_shows_each_state_and_serves_only_what_is_active(home: Path) -> None:
    call_command("seed_demo")
    person = EndUser.objects.select_related("tenant").get()
    assert set(Fact.objects.values_list("status", flat=True)) == {Status.ACTIVE, Status.PENDING, Status.TRASHED}
    assert FactRefusal.objects.exists()
    request = ContextRequest(user_id=person.external_id, include=DEFAULT_INCLUDE - {"turns"})
    context = build(tenant=person.tenant, request=request, now=timezone.now())
    assert "Allergic to peanuts" in context.memory
    assert "手冲咖啡" in context.memory
    assert "今天有点累" not in context.memory
    # It was forgotten: the turn that said it is not recalled either.
    with_turns = build(tenant=person.tenant, request=ContextRequest(user_id=person.external_id), now=timezone.now())
    assert "今天有点累" not in with_turns.memory


def test_no_page_of_the_menu_is_empty(home: Path) -> None:
    call_command("seed_demo")
    for model in (MemoryFile, DiaryEntry, GraphTriple, MemoryGroup, GroupFact, Dream, StoreItem):
        assert model.objects.exists(), model
    # A dream changed a file that the agent had written, and read the agent's episodes.
    edit = DreamEdit.objects.get()
    file = MemoryFile.objects.get(path=edit.path)
    assert (edit.state, edit.file_version, file.version) == (DreamEdit.State.APPLIED, 2, 2)
    assert edit.new_text.strip() in file.content
    assert Dream.objects.get().episodes == DreamedEpisode.objects.count() == 2
    assert set(GraphTriple.objects.values_list("trust", flat=True)) == {"user"}
    assert not StoreItem.objects.filter(end_user=None).exists()
    call_command("check_memory")


def test_a_database_in_use_is_left_alone(home: Path) -> None:
    factories.tenant(slug="acme")
    call_command("seed_demo")
    assert list(Tenant.objects.values_list("slug", flat=True)) == ["acme"]
    assert not (home / "demo.json").exists()


def test_it_is_refused_where_others_get_in(home: Path, settings: Any) -> None:
    settings.PUBLIC_HOST = "hub.example"
    with pytest.raises(CommandError, match="not local"):
        call_command("seed_demo")
    assert not Operator.objects.exists()
    assert not (home / "demo.json").exists()


def test_a_second_run_changes_nothing(home: Path) -> None:
    call_command("seed_demo")
    before = (home / "demo.json").read_bytes(), Fact.objects.count()
    call_command("seed_demo")
    assert ((home / "demo.json").read_bytes(), Fact.objects.count()) == before
