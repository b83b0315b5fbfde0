"""Forgetting many facts at once: first seen, then done, and never more than was seen."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.utils.translation import gettext as _

from memories import conf
from memories.audit import Actor
from memories.conf import Rules
from memories.curation.change_sets import FORGET, Changes
from memories.curation.review import item_states
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import open_write
from memories.exceptions import Conflict
from memories.models import EndUser, Fact, FactQuerySet, Status

MOST = 1_000


@dataclass(frozen=True)
class Selection:
    """The facts that would go, in order, how many others of the selection no key may change, and what stands for
    these facts as they are."""

    facts: Sequence[Fact]
    kept: int
    token: str


def look(facts: FactQuerySet, *, write_trust: WriteTrust = AS_USER, rules: Rules) -> Selection:
    """What forget_facts() would do of these facts now. Errors: Conflict when they are too many for one request."""
    rows = facts.exclude(status=Status.TRASHED)
    stays = Q(binding=True) | Q(locked=True) | guarding.beyond(write_trust, rules)
    going = list(rows.exclude(stays).order_by("pk")[: MOST + 1])
    if len(going) > MOST:
        message = _("More than %(most)d facts: name more filters.")
        raise Conflict(message % {"most": MOST})
    named = ",".join(f"{fact.pk}:{fact.version}" for fact in going)
    return Selection(going, rows.filter(stays).count(), hashlib.sha256(named.encode()).hexdigest()[:32])


def forget_facts(
    *,
    end_user: EndUser,
    facts: FactQuerySet,
    token: str,
    actor: Actor,
    now: datetime,
    write_trust: WriteTrust = AS_USER,
) -> Selection:
    """Move these facts of the person to the trash and refuse what they say, as forget_fact() does of one.

    All or nothing, as one change set; what an operator made binding and what is locked stays.

    Errors: Conflict when they are not those that `token` stands for, or too many; PersonMerged, PersonRestricted.
    """
    changes = Changes(actor=actor, now=now)
    # Whoever changes one of them holds the person: what is read from here on stays as it is.
    with open_write(end_user, None):
        seen = look(
            facts.select_related("tenant", "end_user").select_for_update(of=("self",), no_key=True),
            write_trust=write_trust,
            rules=conf.rules(end_user.tenant),
        )
        if seen.token != token:
            raise Conflict(_("These are not the facts that were seen: some were added or changed since. Look again."))
        if seen.facts:
            changes.trash(seen.facts, FORGET)
            changes.refuse_all(end_user, seen.facts)
            item_states.close_answered_items(changes)
            changes.record(FORGET, end_user, counts={"facts": len(seen.facts)})
    return seen
