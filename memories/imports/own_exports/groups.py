"""Groups with the person as a member, and what the person said in them."""

from collections import Counter
from collections.abc import Mapping, Sequence

from memories.content_policy import Road
from memories.imports.own_exports.values import built, id_of, inner, mapped, reference
from memories.imports.own_exports.ways import DANGLING, OF_GROUP, TAKEN, Given, Here, check, check_policy
from memories.imports.records import OTHERS
from memories.models import (
    GroupEvidence,
    GroupFact,
    GroupMember,
    ImportedRow,
    MemoryGroup,
)

Kind = ImportedRow.Kind


def groups(here: Here, rows: Sequence[Given]) -> tuple[int, int, Mapping[str, int]]:
    """Groups with the person as their member, where an operator vouches for it. One that this hub knows under its own
    id keeps the members that it has."""
    counts = Counter[str]()
    for row in rows if here.is_trusted else ():
        given = inner(row, "group")
        old = id_of(given)
        group, member = mapped(here.tenant.pk, old), mapped(here.person.pk, id_of(row))
        members = GroupMember.objects.filter(tenant=here.tenant, end_user=here.person.pk)
        if members.filter(group__in=[old, group]).exists():
            counts["there"] += 1
        elif MemoryGroup.objects.filter(pk=old, tenant=here.tenant).exists():
            counts[TAKEN] += 1
        else:
            counts["stored"] += 1
            own = built(MemoryGroup, given)
            own.pk, own.tenant = group, here.tenant
            made = built(GroupMember, row)
            made.pk, made.tenant, made.end_user_id, made.group_id = member, here.tenant, here.person.pk, group
            is_new = not MemoryGroup.objects.filter(pk=group).exists()
            MemoryGroup.objects.bulk_create([own], ignore_conflicts=True)
            GroupMember.objects.bulk_create([made])
            here.note(ImportedRow(kind=Kind.MEMBER, row=member))
            if is_new:
                here.note(ImportedRow(kind=Kind.GROUP, row=group))
    left = {TAKEN: counts[TAKEN], OF_GROUP: 0 if here.is_trusted else len(rows)}
    return counts["stored"], counts["there"], left


def group_facts(here: Here, rows: Sequence[Given]) -> tuple[int, int, Mapping[str, int]]:
    """They rest on what the person said, which comes with `said_in_groups`."""
    if not here.is_trusted:
        return 0, 0, {OF_GROUP: len(rows)}
    here.group_facts |= {id_of(row): row for row in rows}
    return 0, 0, {}


def said_in_groups(here: Here, rows: Sequence[Given]) -> tuple[int, int, Mapping[str, int]]:
    """Facts that are about the person, or that they alone said, with what they said. About whom others are, the export
    does not say."""
    counts = Counter[str]()
    for row in rows:
        old = reference(inner(row, "fact"), "id")
        given = here.group_facts.pop(old, None) if old else None
        group = mapped(here.tenant.pk, reference(given, "group") or old) if given and old else None
        if not (old and given and group):
            counts[OTHERS if here.is_trusted else OF_GROUP] += 1
        elif not MemoryGroup.objects.filter(pk=group, tenant=here.tenant).exists():
            counts[DANGLING] += 1
        elif GroupFact.objects.filter(pk=mapped(here.person.pk, old), tenant=here.tenant).exists():
            counts["there"] += 1
        else:
            counts["stored"] += 1
            fact = built(GroupFact, {**given, "change_set": None})
            fact.pk, fact.tenant, fact.group_id = mapped(here.person.pk, old), here.tenant, group
            fact.about_id = here.person.pk if given.get("about_you") else None
            check(here, fact, fact.content)
            check_policy(here, Road.GROUP, fact.content)
            fact.set_text(fact.content)
            evidence = built(GroupEvidence, row)
            evidence.pk, evidence.tenant = mapped(here.person.pk, id_of(row)), here.tenant
            evidence.fact_id, evidence.end_user_id = fact.pk, here.person.pk
            fact.save(force_insert=True)
            evidence.save(force_insert=True)
            here.note(ImportedRow(kind=Kind.SAID, row=fact.pk))
    return counts.pop("stored", 0), counts.pop("there", 0), counts
