"""Which skills an agent is given in a session, and as which files.

A session has a skill, or is one of those without it, by a hash of both: the same one each time. Who is given nothing of
a skill that others get is the comparison. The hub's files are read-only, and a file that the agent itself wrote at the
same path takes their place.
"""

import hashlib
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.db.models import F

from memories import conf
from memories.models import EndUser, MemoryFile, Skill, SkillText, SkillVersion, Tenant
from memories.skills import rendering

FOLDER = "/skills/"
_LINES = (SkillText.Section.STEP, SkillText.Section.CHECK, SkillText.Section.PITFALL)


@dataclass(frozen=True)
class ServedSkill:
    """A version in use with its texts in their order."""

    version: SkillVersion
    texts: tuple[SkillText, ...]

    @property
    def name(self) -> str:
        return self.version.skill.name

    @property
    def path(self) -> str:
        return self.version.skill.path

    @property
    def description(self) -> str:
        return rendering.description(self.texts)

    @cached_property
    def content(self) -> str:
        return rendering.skill_md(self.name, self.texts)

    def as_file(self) -> MemoryFile:
        """It as a file that is not stored: locked, of the version's number and time."""
        version = self.version
        # Whatever is in use has been so from a moment on.
        since = version.served_from or version.created_at
        return MemoryFile(
            tenant=version.skill.tenant,
            path=self.path,
            content=self.content,
            size=len(self.content.encode()),
            version=version.number,
            locked=True,
            actor_kind="",
            trust="",
            created_at=since,
            updated_at=since,
        )


@dataclass(frozen=True)
class Session:
    """Who asks: a person, an agent, and the conversation as the caller names it, or none."""

    tenant: Tenant
    person: EndUser | None
    agent_id: str = ""
    session_id: str = ""

    def has(self, skill: Skill) -> bool:
        """Whether it is one of the share that is given the skill. Without a session the person is."""
        unit = f"{self.agent_id}\n{self.session_id or (self.person.pk if self.person else '')}"
        found = hashlib.sha256(f"{skill.pk}\n{unit}".encode()).digest()
        return int.from_bytes(found[:4]) % 100 < skill.share


@dataclass(frozen=True)
class Offer:
    """What a session is given, and what it would be given if it were not kept without it."""

    session: Session
    served: Sequence[ServedSkill] = ()
    control: Sequence[SkillVersion] = ()

    def named(self, name: str) -> ServedSkill | None:
        return next((one for one in self.served if one.name == name), None)

    def files(self) -> dict[str, MemoryFile]:
        """Path → file."""
        return {one.path: one.as_file() for one in self.served}


def offer(session: Session) -> Offer:
    """What is in use for this session, by name; nothing where skills are off, or of a person under restriction. Two
    statements, or one."""
    if not conf.rules(session.tenant).skills or (session.person and session.person.restricted_at):
        return Offer(session)
    skills = Skill.objects.served_to(session.tenant, session.person, session.agent_id)
    rows = SkillVersion.objects.filter(
        tenant=session.tenant,
        skill__in=skills.values("pk"),
        number=F("skill__served"),
        state=SkillVersion.State.SERVED,
    )
    versions = list(rows.select_related("skill__tenant").order_by("skill__name"))
    texts = texts_of(versions)
    found = [ServedSkill(one, texts[one.pk]) for one in versions if says_something(texts.get(one.pk, ()))]
    return Offer(
        session,
        [one for one in found if session.has(one.version.skill)],
        [one.version for one in found if not session.has(one.version.skill)],
    )


def texts_of(versions: Iterable[SkillVersion]) -> dict[uuid.UUID, tuple[SkillText, ...]]:
    """Of each version the texts that stand, in their order."""
    ids = [one.pk for one in versions]
    found: dict[uuid.UUID, list[SkillText]] = {}
    for text in SkillText.objects.standing().filter(of_version__in=ids).order_by("position") if ids else ():
        found.setdefault(text.of_version_id, []).append(text)
    return {pk: tuple(texts) for pk, texts in found.items()}


def says_something(texts: Iterable[SkillText]) -> bool:
    """Whether there is more than a title."""
    return any(one.section in _LINES for one in texts)
