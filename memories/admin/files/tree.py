"""The tab of a person with the files of one agent as a tree of folders."""

import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from memories.admin.people.views import PersonViews
from memories.admin.site.page import address, require
from memories.curation.people.external_ids import LONGEST_ID
from memories.files import seeds
from memories.files.reading import FileTree
from memories.models import EndUser, MemoryFile

FILES_SHOWN = 1_000
AGENTS_SHOWN = 100
# Deeper rows are indented as much as these.
DEEPEST = 8


@dataclass(frozen=True)
class TreeRow:
    """A line of the tree: a file, or a folder if there is no file."""

    name: str
    depth: int
    file: MemoryFile | None = None


@dataclass(frozen=True)
class AgentFiles:
    """How many files the person has for an agent; empty id: for requests that name none."""

    agent_id: str
    present: int
    deleted: int


def tree_of(files: Sequence[MemoryFile]) -> Iterator[TreeRow]:
    """Folders in order, each with its files and then the folders in it.

    A folder that holds nothing but one other folder has no line of its own: `projects/2026/`. So there are at most two
    folders for each file, however deep somebody made them.
    """
    inside: dict[tuple[str, ...], list[tuple[str, MemoryFile]]] = defaultdict(list)
    for file in files:
        *names, name = file.path[1:].split("/")
        inside[tuple(names)].append((name, file))
    folders = sorted(inside)
    shared = {_shared(one, other) for one, other in pairwise(folders)}
    above: list[tuple[str, ...]] = []
    for folder in sorted(shared.union(folders)):
        while above and folder[: len(above[-1])] != above[-1]:
            above.pop()
        if folder:
            name = "/".join(folder[len(above[-1]) if above else 0 :])
            yield TreeRow(f"{name}/", min(len(above), DEEPEST))
            above.append(folder)
        for name, file in sorted(inside.get(folder, ()), key=lambda pair: pair[0]):
            yield TreeRow(name, min(len(above), DEEPEST), file)


def _shared(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return tuple(left for left, _right in pairs)


class FileTreeViews(PersonViews):
    """A page of people with the tab of their files."""

    @address("<uuid:object_id>/files/", "files")
    def files_view(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        person = self.find(request, str(object_id), may_change=False)
        require(request, "memories.view_memoryfile")
        agents = _agents_of(person)
        agent_id = request.GET.get("agent", agents[0].agent_id if agents else "")[:LONGEST_ID].replace("\0", "")
        tree = FileTree(person.tenant, person, agent_id, timezone.now())
        # One more, to know whether there are more.
        files = list(tree.present.defer("content").order_by("path")[: FILES_SHOWN + 1])
        shown: dict[str, Any] = {
            "tab": "files",
            "agents": agents,
            "agent_id": agent_id,
            "rows": list(tree_of(files[:FILES_SHOWN])),
            "more": len(files) > FILES_SHOWN,
            "count": next((one.present for one in agents if one.agent_id == agent_id), 0),
            "deleted": sum(one.deleted for one in agents),
            # What the agent reads while nobody has written the first file; a deleted one is not seeded again.
            "seed": None if tree.rows.filter(path=seeds.SEEDED).exists() else tree.seeded(),
        }
        return self.render_tab(request, person, "memories/person_files.html", shown)


def _agents_of(person: EndUser) -> list[AgentFiles]:
    """Those with files, requests without an agent first; one query."""
    now = timezone.now()
    is_there = Q(trashed_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))
    rows = MemoryFile.objects.of(person.tenant, person).order_by("agent_id").values("agent_id")
    is_deleted = Q(trashed_at__isnull=False)
    counted = rows.annotate(present=Count("pk", filter=is_there), deleted=Count("pk", filter=is_deleted))
    return [AgentFiles(row["agent_id"], row["present"], row["deleted"]) for row in counted[:AGENTS_SHOWN]]
