"""Which episodes nobody has dreamt of yet, and whose turn it is."""

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from memories import conf
from memories.dream.proposals import FILES, LONGEST_FILE, SKILLS
from memories.llm.prompts import dream_edits
from memories.llm.prompts.dream_edits import EntryInput, FileInput
from memories.llm.prompts.framing import Message
from memories.models import Dream, DreamedEpisode, Encoding, EndUser, Episode, EpisodeQuerySet, MemoryFile, Tenant
from memories.models.memories.dreams import OPEN
from memories.time_zones import zone_or_utc

MOST_EPISODES = 20
LONGEST_ENTRY = 1_000
# Characters of all skills together that a prompt shows; of the others it names the paths.
_LONGEST_SKILLS = 8_000
_MOST_SKILLS = 50
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
    return dream_edits.build(
        entries=[
            EntryInput(number, person.local(episode.ended_at), episode.text[:LONGEST_ENTRY])
            for number, episode in enumerate(episodes, start=1)
        ],
        files=_files(person, agent_id, now=now),
        today=person.local(now).date(),
        time_zone=person.clock.key,
        longest=LONGEST_FILE,
        guide=person.tenant.dream_guide,
    )


def _files(person: EndUser, agent_id: str, *, now: datetime) -> list[FileInput]:
    rows = MemoryFile.objects.of(person.tenant, person).present(now=now).filter(agent_id=agent_id)
    rows = rows.filter(encoding=Encoding.UTF_8)
    named = {row.path: row for row in rows.filter(path__in=FILES)}
    shown = [_shown(path, named[path].content if path in named else None, LONGEST_FILE) for path in FILES]
    left = _LONGEST_SKILLS
    for row in rows.below(SKILLS).order_by("path")[:_MOST_SKILLS]:
        one = _shown(row.path, row.content, left)
        left -= len(one.shown or "")
        shown.append(one)
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
