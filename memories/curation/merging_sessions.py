"""Sessions of two people who are merged: of two with one id and one agent, the merged person's gets another id."""

import uuid
from collections.abc import Iterable

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from memories.curation.merging_locks import Pair
from memories.curation.merging_rows import Kind, note, noted
from memories.exceptions import Conflict
from memories.models import EndUser, PersonMerge, Session

_LONGEST_ID = 255
# As much of the hub's own id as tells sessions of one person apart.
_DIGITS = 12


def same_ids(survivor: EndUser, merged: EndUser) -> QuerySet[Session]:
    """Sessions of the merged person whose id and agent the survivor has as well."""
    ours = Session.objects.filter(end_user=survivor, agent_id=OuterRef("agent_id"), external_id=OuterRef("external_id"))
    return Session.objects.filter(Exists(ours), end_user=merged)


def rename(pair: Pair, merge: PersonMerge) -> int:
    """Give them their other id; how many. Errors: Conflict when there is no room for it."""
    renamed = list(same_ids(*pair.people))
    for session in renamed:
        session.external_id += _mark(session)
        if len(session.external_id) > _LONGEST_ID:
            raise Conflict(_("Both have a session of one id, and that is too long to be told apart from another."))
    Session.objects.bulk_update(renamed, ["external_id"], batch_size=500)
    return note(merge, Kind.RENAMED, _ids(renamed))


def name_again(merge: PersonMerge) -> None:
    """Undo it, after they are the other person's again."""
    renamed = list(Session.objects.filter(pk__in=noted(merge, Kind.RENAMED)))
    for session in renamed:
        session.external_id = session.external_id.removesuffix(_mark(session))
    Session.objects.bulk_update(renamed, ["external_id"], batch_size=500)


def _mark(session: Session) -> str:
    return f"~{session.pk.hex[-_DIGITS:]}"


def _ids(sessions: Iterable[Session]) -> list[uuid.UUID]:
    return [session.pk for session in sessions]
