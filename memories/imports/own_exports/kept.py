"""Rows of the profile, of files with their versions, of plain kinds such as the diary, and of the graph."""

from collections.abc import Callable, Sequence
from typing import Any

from memories.content_policy import Road
from memories.files import paths
from memories.graph import naming
from memories.imports.own_exports.values import built, inners, reference
from memories.imports.own_exports.ways import Given, Here, Row, check, check_long, check_policy, is_allowed, written
from memories.imports.raw_documents import RefusedDocumentError
from memories.kinds import Kind
from memories.models import (
    Encoding,
    FileVersion,
    GraphEntity,
    GraphTriple,
    MemoryFile,
)


def section(here: Here, made: Any, _: Given) -> None:
    texts = [getattr(made, name, "") for name in ("summary", "before", "after")]
    check(here, made, *texts)
    check_policy(here, Road.PROFILE, *texts)
    if hasattr(made, "change_set"):
        made.change_set = None


def file(here: Here, made: MemoryFile, _: Given) -> None:
    if paths.fault_of_file(made.path):
        raise RefusedDocumentError("/path invalid_path")
    check_long(here, made, made.content if made.is_text else "")
    check_policy(here, Road.FILE, made.content if made.is_text else "")


def beside_files(here: Here, rows: Sequence[Row]) -> None:
    versions = []
    for row in rows:
        for one in inners(row.given, "versions"):
            own = built(FileVersion, {**one, "change_set": None})
            own.tenant_id, own.file_id = here.tenant.pk, row.made.pk
            written(here, own)
            if own.encoding != Encoding.UTF_8 or is_allowed(here, own.content):
                versions.append(own)
    FileVersion.objects.bulk_create(versions)


def plain(kind: Kind) -> Callable[[Here, Any, Given], None]:
    def complete(here: Here, made: Any, _: Given) -> None:
        check_long(here, made, made.content)
        made.change_set = None
        topic = kind.plain.topic if kind.plain else ""
        check_policy(here, Road.DIARY, made.content, getattr(made, topic) if topic else "")
        made.set_text(made.content, **({topic: getattr(made, topic)} if topic else {}))

    return complete


def entity(_here: Here, made: GraphEntity, _: Given) -> None:
    if not made.name:
        raise RefusedDocumentError("/name blank")
    made.digest = naming.digest_of(made.name)


def link_entities(here: Here, rows: Sequence[Given]) -> None:
    known = here.known(GraphEntity, (reference(row, name) for row in rows for name in ("id", "merged_into")))
    for row in rows:
        own, other = (known.get(reference(row, name) or here.person.pk) for name in ("id", "merged_into"))
        if own and other and own != other:
            GraphEntity.objects.filter(pk=own, merged_into=None).update(merged_into=other)


def triple(here: Here, made: GraphTriple, _: Given) -> None:
    check(here, made, made.predicate)
    if here.tenant.policy_version:
        names = dict(GraphEntity.objects.filter(pk__in=[made.subject_id, made.object_id]).values_list("pk", "name"))
        ends = [names.get(pk, "") for pk in (made.subject_id, made.object_id)]
        check_policy(here, Road.GRAPH, f"{ends[0]} {made.predicate.replace('_', ' ')} {ends[1]}", ends[1])
    made.dated_at = made.valid_from or made.created_at
