"""What people and keys may do to an episode: each verb rechecks under a lock, and leaves the version it made on record.

No verb makes an episode: its stretch of the session is summarised once, and stays so when the episode is gone.
"""

import uuid
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.change_sets import ChangeSet, still_ahead
from memories.curation.episode_changes import LIVE, change_episode, locked_episode, rewrite
from memories.curation.fact_changes import check_allowed
from memories.curation.scrubbing import episode_without_secrets
from memories.exceptions import Conflict
from memories.models import Episode, EpisodeStatus, Tenant


def edit_episode(
    *,
    episode_id: uuid.UUID,
    tenant: Tenant | None,
    changes: dict[str, Any],
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
) -> Episode:
    """Set the named fields of a live episode, without secrets; an operator's edit is binding.

    One that waits for review goes on waiting. Errors: NotFound, PersonRestricted, OperatorWord, PreconditionFailed,
    Conflict.
    """
    stated = episode_without_secrets(changes)

    def change(episode: Episode, made: ChangeSet) -> None:
        _must_be_live(episode)
        rewrite(episode, stated, made)

    return change_episode(episode_id, tenant, "edit", change, actor=actor, now=now, expected_version=expected_version)


def pin_episode(*, episode_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None) -> Episode:
    """An operator keeps a live episode: it does not fade, and no key changes it. Errors: as edit_episode()."""

    def change(episode: Episode, _changes: ChangeSet) -> None:
        _must_be_live(episode)
        episode.pinned = episode.binding = True

    return change_episode(episode_id, None, "pin", change, actor=actor, now=now, expected_version=expected_version)


def unpin_episode(
    *, episode_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None
) -> Episode:
    """An operator lets an episode go again: it fades, and keys may change it. Errors: as edit_episode()."""

    def change(episode: Episode, _changes: ChangeSet) -> None:
        episode.pinned = episode.binding = False

    return change_episode(episode_id, None, "unpin", change, actor=actor, now=now, expected_version=expected_version)


def forget_episode(
    *,
    episode_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
) -> None:
    """Move an episode to the trash; what waits about it is settled. Already there: nothing happens."""

    def change(episode: Episode, _changes: ChangeSet) -> None:
        episode.status, episode.trashed_at = EpisodeStatus.TRASHED, now

    with transaction.atomic():
        if locked_episode(episode_id, tenant).status == EpisodeStatus.TRASHED:
            return
        change_episode(episode_id, tenant, "forget", change, actor=actor, now=now, expected_version=expected_version)


def restore_episode(
    *, episode_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None
) -> Episode:
    """An operator brings an episode back from the trash: it is served, and fades from now on.

    Errors: as edit_episode().
    """

    def change(episode: Episode, _changes: ChangeSet) -> None:
        if episode.status != EpisodeStatus.TRASHED:
            said = _("The episode is %(status)s, not in the trash.")
            raise Conflict(said % {"status": episode.get_status_display().lower()})
        episode.status, episode.trashed_at = EpisodeStatus.ACTIVE, None
        # Whoever restores it recalls it: as faded as it was, the next pass would take it again.
        episode.last_recalled_at = now
        episode.expires_at = still_ahead(episode.expires_at, now=now)

    return change_episode(episode_id, None, "restore", change, actor=actor, now=now, expected_version=expected_version)


def delete_episode(
    *,
    episode_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
) -> None:
    """Delete an episode with its vectors and what was asked about it: no text of it stays.

    The session remembers how far it was summarised, so no other episode is made of the same turns.
    """
    with transaction.atomic():
        episode = locked_episode(episode_id, tenant)
        check_allowed(episode, actor=actor, expected_version=expected_version)
        audit.record(actor=actor, verb="delete", target=episode, object_id=episode.pk, tenant=episode.tenant, now=now)
        episode.delete()


def _must_be_live(episode: Episode) -> None:
    if episode.status not in LIVE:
        said = _("The episode is %(status)s: only an operator can restore it.")
        raise Conflict(said % {"status": episode.get_status_display().lower()})
