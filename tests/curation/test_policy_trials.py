"""Dry runs of a content policy over what is stored, and the deletion of what one found with its one undo."""

import pytest

from memories import tasks
from memories.audit import Actor
from memories.curation import policy_trials
from memories.curation.batches import undo_batch
from memories.curation.people.merging.merge import merge_people
from memories.curation.tenants.content_policy import put_policy
from memories.exceptions import Conflict
from memories.models import (
    ActorKind,
    Batch,
    ChangeSet,
    EndUser,
    Fact,
    PolicyFinding,
    PolicyTrial,
    ProfileSection,
    Tenant,
)
from tests import factories
from tests.factories import COMMAND, KEY, NOW

HEALTH = [{"name": "health"}]


@pytest.fixture
def people(tenant: Tenant) -> list[EndUser]:
    """Two people, each with a memory of each kind that is about health, and one that is not."""
    made = [factories.end_user(tenant, external_id=name) for name in ("u1", "u2")]
    for person in made:
        for text in ("Has asthma", "Lives in Leiden"):
            factories.fact(person, text)
        factories.episode(factories.session(person), summary="They spoke of asthma.")
        factories.profile_section(person, summary="Was diagnosed with asthma.")
        factories.memory_file(person, content="# Notes\nHas asthma\n")
        factories.diary_entry(person, content="The user has asthma")
        factories.group_fact(factories.memory_group(person), person, content="Has asthma")
        factories.triple(person, "user", "is", "asthmatic")
    return made


def run(tenant: Tenant) -> PolicyTrial:
    trial = policy_trials.start_trial(tenant=tenant, given=HEALTH, actor=COMMAND, now=NOW)
    assert policy_trials.state_of(trial) == "running"
    drain()
    trial.refresh_from_db()
    return trial


def drain() -> None:
    while not tasks.try_policies():
        """Slice by slice."""


def live() -> int:
    return Fact.objects.exclude(status="trashed").count()


def test_a_dry_run_finds_what_would_go_and_changes_nothing(tenant: Tenant, people: list[EndUser]) -> None:
    factories.fact(factories.end_user(), "Has asthma")
    trial = run(tenant)
    assert policy_trials.counts_of(trial) == {"health": dict.fromkeys(policy_trials.KINDS, 2)}
    assert (policy_trials.state_of(trial), trial.seen, trial.total) == ("done", 16, 16)
    assert (live(), Batch.objects.count()) == (5, 0)
    assert "asthma" not in str(list(PolicyFinding.objects.values()))


def test_what_was_found_of_one_who_was_merged_since_is_deleted_where_it_is_now(
    tenant: Tenant, people: list[EndUser]
) -> None:
    trial = run(tenant)
    merge_people(survivor=people[0].pk, merged=people[1].pk, actor=factories.STAFF, now=NOW)
    policy_trials.delete_found(trial_id=trial.pk, tenant=tenant, actor=COMMAND, now=NOW)
    drain()
    trial.refresh_from_db()
    assert (policy_trials.state_of(trial), trial.findings.count(), live()) == ("deleted", 0, 2)
    assert policy_trials.counts_of(run(tenant)).get("health", {}).get("fact") is None


def test_what_it_found_is_deleted_with_one_undo(tenant: Tenant, people: list[EndUser]) -> None:
    trial = run(tenant)
    put_policy(tenant=tenant, given=HEALTH, actor=COMMAND, now=NOW)
    policy_trials.delete_found(trial_id=trial.pk, tenant=tenant, actor=COMMAND, now=NOW)
    with pytest.raises(Conflict):
        policy_trials.start_trial(tenant=tenant, given=HEALTH, actor=COMMAND, now=NOW)
    drain()
    trial.refresh_from_db()
    assert (policy_trials.state_of(trial), trial.findings.count(), live()) == ("deleted", 0, 2)
    assert not ProfileSection.objects.written().exists()
    assert trial.batch
    assert Batch.objects.get(pk=trial.batch).counts == {"asked": 14, "done": 14}
    assert ChangeSet.objects.filter(batch=trial.batch).count() == 2
    again = run(tenant)
    assert policy_trials.counts_of(again) == {}
    undo_batch(batch_id=trial.batch, actor=COMMAND, now=NOW)
    assert (live(), ProfileSection.objects.written().count()) == (4, 2)
    assert policy_trials.counts_of(run(tenant)) == {"health": dict.fromkeys(policy_trials.KINDS, 2)}


def test_one_who_is_erased_meanwhile_is_left_out_and_a_worker_that_dies_is_followed(
    tenant: Tenant, people: list[EndUser]
) -> None:
    trial = policy_trials.start_trial(tenant=tenant, given=HEALTH, actor=COMMAND, now=NOW)
    # A slice of no time reads one memory, and leaves the rest to the next.
    assert policy_trials.run_slice(now=NOW, seconds=-1)
    trial.refresh_from_db()
    assert (trial.seen, trial.lease_token) == (1, None)
    PolicyFinding.objects.filter(end_user=people[0]).delete()
    Fact.objects.filter(end_user=people[0]).delete()
    while policy_trials.run_slice(now=NOW, seconds=0):
        """Until it is over."""
    assert trial.findings.filter(kind="fact").get().end_user == people[1]


def test_what_was_corrected_since_stays_and_a_key_leaves_what_is_an_operators(
    tenant: Tenant, people: list[EndUser]
) -> None:
    one, restricted = people
    for text, over in (("Takes insulin for diabetes", {"binding": True}), ("Has diabetes", {"locked": True})):
        factories.fact(one, text, **over)
    trial = run(tenant)
    assert trial.findings.filter(kind="fact", end_user=one).count() == 3
    Fact.objects.filter(end_user=one, content="Has asthma").update(content="Likes tea")
    EndUser.objects.filter(pk=restricted.pk).update(restricted_at=NOW)
    policy_trials.delete_found(trial_id=trial.pk, tenant=tenant, actor=KEY, now=NOW)
    drain()
    assert (live(), ProfileSection.objects.written().get().end_user) == (6, restricted)
    # A key's deletion has its undo, too; an operator's takes the rest.
    done = PolicyTrial.objects.get(pk=trial.pk).batch
    assert done
    undo_batch(batch_id=done, actor=COMMAND, now=NOW)
    assert ProfileSection.objects.written().count() == 2
    again = run(tenant)
    operator = Actor(ActorKind.OPERATOR, str(factories.operator().pk))
    policy_trials.delete_found(trial_id=again.pk, tenant=tenant, actor=operator, now=NOW)
    drain()
    assert set(Fact.objects.exclude(status="trashed").values_list("content", flat=True)) == {
        "Likes tea", "Lives in Leiden",
    }  # fmt: skip
