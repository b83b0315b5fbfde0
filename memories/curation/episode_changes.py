"""The frame of every verb on an episode: its locks, its next version, and what a decision leaves to its undo."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import transaction

from memories import audit, conf
from memories.audit import Actor
from memories.curation.change_sets import ChangeSet
from memories.curation.fact_changes import check_allowed, lock_person
from memories.exceptions import NotFound
from memories.models import Episode, EpisodeStatus, Tenant
from memories.pipeline import review_items

LIVE = (EpisodeStatus.ACTIVE, EpisodeStatus.PENDING)
TEXTS = ("summary", "key_topics", "actions_taken", "outcomes")
UNDONE_FIELDS = (*TEXTS, "importance", "quality", "flaws", "extractor", "status", "pinned", "binding")
UNDONE_MOMENTS = ("expires_at", "trashed_at")
Change = Callable[[Episode, ChangeSet], None]


def change_episode(
    episode_id: uuid.UUID,
    tenant: Tenant | None,
    verb: str,
    change: Change,
    *,
    actor: Actor,
    now: datetime,
    expected_version: int | None,
) -> Episode:
    """The frame of every verb: lock, check, change, save, record, settle what waits about it; all or nothing."""
    changes = ChangeSet(actor=actor, now=now)
    with transaction.atomic():
        episode = locked_episode(episode_id, tenant)
        check_allowed(episode, actor=actor, expected_version=expected_version)
        with changing(episode, verb, changes):
            change(episode, changes)
        review_items.settle_episode(episode, now=now)
    return episode


def locked_episode(episode_id: uuid.UUID, tenant: Tenant | None) -> Episode:
    """The person, then the episode, as every verb on a fact takes its locks. Errors: NotFound."""
    episodes = Episode.objects.filter(pk=episode_id)
    if tenant is not None:
        episodes = episodes.filter(tenant=tenant)
    lock_person(episodes.values_list("end_user", flat=True).first())
    episode = lock(episode_id)
    if episode is None:
        raise NotFound
    return episode


def lock(episode_id: uuid.UUID | None) -> Episode | None:
    """The row as it is now, after lock_person(); None when it is gone."""
    rows = Episode.objects.select_for_update(of=("self",), no_key=True).select_related("tenant", "end_user")
    return rows.filter(pk=episode_id).first() if episode_id else None


@contextmanager
def changing(episode: Episode, verb: str, changes: ChangeSet) -> Iterator[None]:
    """Save what the block makes of a locked episode; the audit event names the version, there are no revisions."""
    before = _snapshot(episode)
    yield
    episode.version += 1
    episode.updated_at = changes.now
    episode.refresh_decay(now=changes.now, rules=conf.rules(episode.tenant))
    episode.save()
    after = _snapshot(episode)
    changed = {name: value for name, value in before.items() if value != after[name]}
    changes.episode = {"version": episode.version, "before": changed}
    audit.record(
        actor=changes.actor,
        verb=verb,
        target=episode,
        object_id=episode.pk,
        tenant=episode.tenant,
        now=changes.now,
        counts={"version": episode.version},
    )


def put_back(episode: Episode, before: dict[str, Any]) -> None:
    """Give the episode the fields that a decision changed, as they were."""
    for name, value in before.items():
        is_moment = name in UNDONE_MOMENTS and value
        setattr(episode, name, datetime.fromisoformat(value) if is_moment else value)
    episode.say(episode.summary)


def rewrite(episode: Episode, stated: dict[str, Any], changes: ChangeSet) -> None:
    """Take what somebody states of a live episode; an operator's is binding."""
    rewritten = any(stated.get(name, getattr(episode, name)) != getattr(episode, name) for name in TEXTS)
    for name, value in stated.items():
        setattr(episode, name, value)
    episode.say(episode.summary)
    if rewritten:
        # What was wrong with the old text is not wrong with theirs, and nobody judges what a person wrote.
        episode.quality, episode.flaws = 1.0, []
        episode.extractor = "operator" if changes.actor.is_operator else "api"
    episode.binding = episode.binding or changes.actor.is_operator


def _snapshot(episode: Episode) -> dict[str, Any]:
    """What a decision may change; moments as ISO-8601 text."""
    state = {name: getattr(episode, name) for name in UNDONE_FIELDS}
    moments = {name: getattr(episode, name) for name in UNDONE_MOMENTS}
    return {**state, **{name: moment.isoformat() if moment else None for name, moment in moments.items()}}
