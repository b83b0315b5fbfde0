"""Which episodes nobody has dreamt of yet, and whose turn it is."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from memories import conf
from memories.dream.proposals import LONGEST_FILE
from memories.files import dream_files
from memories.files.dream_files import EditableFiles
from memories.llm.prompts import dream_edits
from memories.llm.prompts.dream_edits import EntryInput, FileInput
from memories.llm.prompts.framing import Message
from memories.models import (
    Dream,
    DreamedEpisode,
    Encoding,
    EndUser,
    Episode,
    EpisodeQuerySet,
    MemoryFile,
    MemoryFileQuerySet,
    Tenant,
)
from memories.models.memories.dreams import OPEN
from memories.time_zones import zone_or_utc

MOST_EPISODES = 20
LONGEST_ENTRY = 1_000
# Characters that a prompt shows of the files of the setting, and of those in its folders; of others it has the paths.
_LONGEST_NAMED, _LONGEST_BELOW = 40_000, 8_000
_MOST_BELOW = 50
# So many people are looked up at a time.
PAGE = 50


def due(
    *, tenant: Tenant, rules: conf.Rules, now: datetime, passed: Sequence[uuid.UUID] = ()
) -> list[tuple[EndUser, str]]:
    """People and agents with unread episodes about whom nothing was dreamt for long enough, but for these people.

    Those who wait longest come first. Under restriction, and while a dream about these files is open, nobody is due.
    """
    since = last_time(tenant, rules, now=now)
    # With an hour of its own a dream reads what was there then: what comes later waits for the next day.
    rows = unread(tenant, now=now).filter(created_at__lte=since if rules.dream_hour else now)
    rows = rows.filter(end_user__restricted_at=None).exclude(end_user__in=passed)
    theirs = Dream.objects.filter(end_user=OuterRef("end_user"), agent_id=OuterRef("session__agent_id"))
    theirs = theirs.filter(kind=Dream.Kind.FILES)
    rows = rows.exclude(Exists(theirs.filter(Q(state__in=OPEN) | Q(started_at__gt=since))))
    pairs = rows.order_by("created_at").values_list("end_user", "session__agent_id")[: PAGE * MOST_EPISODES]
    return people_of(list(dict.fromkeys(pairs))[:PAGE])


def people_of(pairs: Sequence[tuple[uuid.UUID, str]]) -> list[tuple[EndUser, str]]:
    """The same with the rows of the people who are still there."""
    people = EndUser.objects.select_related("tenant").in_bulk([person for person, _agent in pairs])
    return [(people[person], agent) for person, agent in pairs if person in people]


def unread(tenant: Tenant, *, now: datetime) -> EpisodeQuerySet:
    """Active episodes that nobody dreamt of."""
    read = DreamedEpisode.objects.filter(episode=OuterRef("pk"))
    return Episode.objects.filter(tenant=tenant).active(now=now).exclude(Exists(read))


def next_episodes(person: EndUser, agent_id: str, *, now: datetime) -> list[Episode]:
    """The oldest unread episodes of the person with this agent, at most MOST_EPISODES."""
    rows = unread(person.tenant, now=now).filter(end_user=person, session__agent_id=agent_id)
    return list(rows.order_by("ended_at", "pk")[:MOST_EPISODES])


def messages(person: EndUser, agent_id: str, episodes: Sequence[Episode], *, now: datetime) -> list[Message]:
    """The prompt: these episodes, the files as they are, the tenant's guide."""
    editable = editable_files(person, agent_id, now=now)
    return dream_edits.build(
        entries=[
            EntryInput(number, person.local(episode.ended_at), episode.text[:LONGEST_ENTRY])
            for number, episode in enumerate(episodes, start=1)
        ],
        files=_shown_files(person, agent_id, editable, now=now),
        folders=[folder.removeprefix("/") for folder in editable.folders],
        today=person.local(now).date(),
        time_zone=person.clock.key,
        longest=LONGEST_FILE,
        guide=person.tenant.dream_guide,
    )


def editable_files(person: EndUser, agent_id: str, *, now: datetime) -> EditableFiles:
    """What a dream may edit now: the tenant's setting, with the files of it that are there."""
    named = dream_files.of_lines(person.tenant.dream_files)
    rows = _of_agent(person, agent_id, now=now).filter(path__in=named.files)
    return replace(named, present=frozenset(rows.values_list("path", flat=True)))


def _of_agent(person: EndUser, agent_id: str, *, now: datetime) -> MemoryFileQuerySet:
    return MemoryFile.objects.of(person.tenant, person).present(now=now).filter(agent_id=agent_id)


def _shown_files(person: EndUser, agent_id: str, editable: EditableFiles, *, now: datetime) -> list[FileInput]:
    rows = _of_agent(person, agent_id, now=now).filter(encoding=Encoding.UTF_8)
    texts = dict(rows.filter(path__in=editable.present).values_list("path", "content"))
    shown, left = [], _LONGEST_NAMED
    for path in editable.shown():
        shown.append(_shown(path, texts.get(path), min(LONGEST_FILE, left)))
        left -= len(shown[-1].shown or "")
    left = _LONGEST_BELOW
    for folder in editable.folders:
        for row in rows.below(folder).exclude(path__in=editable.files).order_by("path")[:_MOST_BELOW]:
            shown.append(_shown(row.path, row.content, left))
            left -= len(shown[-1].shown or "")
    return shown


def _shown(path: str, text: str | None, longest: int) -> FileInput:
    if text is None:
        return FileInput(path.removeprefix("/"), None)
    return FileInput(path.removeprefix("/"), text[:longest], is_cut=len(text) > longest)


def last_time(tenant: Tenant, rules: conf.Rules, *, now: datetime) -> datetime:
    """Who was dreamt about since then is not due."""
    if not rules.dream_hour:
        return now - timedelta(hours=rules.dream_hours)
    local = now.astimezone(zone_or_utc(tenant.time_zone))
    # 24 o'clock is midnight.
    begun = local.replace(hour=rules.dream_hour % 24, minute=0, second=0, microsecond=0)
    return begun if begun <= local else begun - timedelta(days=1)
