"""What people and keys do to an episode: each verb locks and checks it, saves its next version, writes an audit event.

No verb makes an episode: its segment of the session is summarised once, and stays so when the episode is deleted.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit, conf, content_policy
from memories.audit import Actor
from memories.content_policy import Road
from memories.curation.change_sets import Changes, still_ahead
from memories.curation.facts.changing import check_allowed
from memories.curation.statements import guarding
from memories.curation.statements.scrubbing import scrubbed_episode
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import locked_row
from memories.exceptions import Conflict
from memories.facts import review_items
from memories.models import Change, Episode, EpisodeStatus, Tenant
from memories.models.memories.episodes import TEXTS
from memories.text import value_texts

UNDONE_FIELDS = (*TEXTS, "importance", "quality", "flaws", "extractor", "status", "pinned", "binding")
UNDONE_MOMENTS = ("expires_at", "trashed_at")


def edit_episode(
    *,
    episode_id: uuid.UUID,
    tenant: Tenant | None,
    changes: dict[str, Any],
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    write_trust: WriteTrust = AS_USER,
) -> Episode:
    """Set the named fields of a live episode, without secrets; an operator's edit is binding.

    One that waits for review goes on waiting. Errors: NotFound, PersonRestricted, OperatorWord, PreconditionFailed,
    Conflict, ReviewNeeded for new words that speak to a model, or of a `write_trust` that is not believed.
    """
    stated = scrubbed_episode(changes)
    with _changing(episode_id, tenant, "edit", actor=actor, now=now, expected_version=expected_version) as episode:
        _must_be_live(episode)
        content_policy.check(episode.tenant, Road.EPISODE, value_texts.strings(stated))
        if not actor.is_operator:
            guarding.check_episode(episode, stated, write_trust)
        rewrite(episode, stated, actor=actor)
    return episode


def pin_episode(*, episode_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None) -> Episode:
    """An operator keeps a live episode: it does not fade, and no key changes it. Errors: as edit_episode()."""
    with _changing(episode_id, None, "pin", actor=actor, now=now, expected_version=expected_version) as episode:
        _must_be_live(episode)
        episode.pinned = episode.binding = True
    return episode


def unpin_episode(
    *, episode_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None
) -> Episode:
    """An operator unpins an episode: it fades, and keys may change it. Errors: as edit_episode()."""
    with _changing(episode_id, None, "unpin", actor=actor, now=now, expected_version=expected_version) as episode:
        episode.pinned = episode.binding = False
    return episode


def forget_episode(
    *,
    episode_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    write_trust: WriteTrust = AS_USER,
) -> None:
    """Move an episode to the trash; open items about it are settled. Already there: nothing happens."""
    with transaction.atomic():
        if locked_row(Episode, episode_id, tenant=tenant).status == EpisodeStatus.TRASHED:
            return
        with _changing(
            episode_id, tenant, "forget", actor=actor, now=now, expected_version=expected_version
        ) as episode:
            guarding.check_ends_episode(episode, write_trust)
            episode.status, episode.trashed_at = EpisodeStatus.TRASHED, now


def restore_episode(
    *, episode_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None
) -> Episode:
    """An operator brings an episode back from the trash: it is served, and fades from now on.

    Errors: as edit_episode().
    """
    with _changing(episode_id, None, "restore", actor=actor, now=now, expected_version=expected_version) as episode:
        if episode.status != EpisodeStatus.TRASHED:
            message = _("The episode is %(status)s, not in the trash.")
            raise Conflict(message % {"status": episode.get_status_display().lower()})
        episode.status, episode.trashed_at = EpisodeStatus.ACTIVE, None
        # A restore counts as a recall. Otherwise the episode would be as faded as before, and trashed by the next pass.
        episode.last_recalled_at = now
        episode.expires_at = still_ahead(episode.expires_at, now=now)
    return episode


def delete_episode(
    *,
    episode_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    write_trust: WriteTrust = AS_USER,
) -> None:
    """Delete an episode with its vectors and its review items: no text of it stays.

    The session remembers how far it was summarised, so no other episode is made of the same turns.
    """
    with transaction.atomic():
        episode = locked_row(Episode, episode_id, tenant=tenant)
        check_allowed(episode, actor=actor, expected_version=expected_version)
        guarding.check_ends_episode(episode, write_trust)
        audit.record(actor=actor, verb="delete", target=episode, now=now)
        episode.delete()


@contextmanager
def _changing(
    episode_id: uuid.UUID,
    tenant: Tenant | None,
    verb: str,
    *,
    actor: Actor,
    now: datetime,
    expected_version: int | None,
) -> Iterator[Episode]:
    """Lock and check the episode, save what the block makes of it, settle what waits about it; all or nothing."""
    changes = Changes(actor=actor, now=now)
    with transaction.atomic():
        episode = locked_row(Episode, episode_id, tenant=tenant)
        check_allowed(episode, actor=actor, expected_version=expected_version)
        with next_version(episode, verb, changes):
            yield episode
        review_items.close_answered_items_of_episode(episode, now=now, change_set=changes.id)
        changes.save(verb, episode)


def lock(episode_id: uuid.UUID | None) -> Episode | None:
    """The row as it is now, locked, after lock_person(); None when it is gone."""
    rows = Episode.objects.select_for_update(of=("self",), no_key=True).select_related("tenant", "end_user")
    return rows.filter(pk=episode_id).first() if episode_id else None


@contextmanager
def next_version(episode: Episode, verb: str, changes: Changes) -> Iterator[None]:
    """Save what the block makes of a locked episode; the audit event names the version, there are no revisions."""
    before = _snapshot(episode)
    yield
    episode.version += 1
    episode.updated_at = changes.now
    episode.refresh_decay(now=changes.now, rules=conf.rules(episode.tenant))
    episode.save()
    after = _snapshot(episode)
    changed = {name: value for name, value in before.items() if value != after[name]}
    changes.record_row_change(
        Change.Table.EPISODE, Change.Action.CHANGED, episode.pk, version=episode.version, before=changed
    )
    audit.record(actor=changes.actor, verb=verb, target=episode, now=changes.now, counts={"version": episode.version})


def rewrite(episode: Episode, stated: dict[str, Any], *, actor: Actor) -> None:
    """Set the stated fields of a live episode; an operator's are binding."""
    rewritten = any(stated.get(name, getattr(episode, name)) != getattr(episode, name) for name in TEXTS)
    for name, value in stated.items():
        setattr(episode, name, value)
    episode.set_text(episode.summary)
    if rewritten:
        # The flaws were those of the old text, and nobody judges what a person wrote.
        episode.quality, episode.flaws = 1.0, []
        episode.extractor = "operator" if actor.is_operator else "api"
    episode.binding = episode.binding or actor.is_operator


def restore_state(episode: Episode, before: dict[str, Any]) -> None:
    """Give the episode the fields that a decision changed, as they were."""
    for name, value in before.items():
        is_moment = name in UNDONE_MOMENTS and value
        setattr(episode, name, datetime.fromisoformat(value) if is_moment else value)
    episode.set_text(episode.summary)


def _snapshot(episode: Episode) -> dict[str, Any]:
    """What a decision may change; moments as ISO-8601 text."""
    state = {name: getattr(episode, name) for name in UNDONE_FIELDS}
    moments = {name: getattr(episode, name) for name in UNDONE_MOMENTS}
    return {**state, **{name: moment.isoformat() if moment else None for name, moment in moments.items()}}


def _must_be_live(episode: Episode) -> None:
    if episode.status not in EpisodeStatus.LIVE:
        message = _("The episode is %(status)s. Only an operator can restore it.")
        raise Conflict(message % {"status": episode.get_status_display().lower()})
