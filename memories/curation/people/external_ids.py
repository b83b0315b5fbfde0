"""A person's external id: what the API takes as one, how staff change it, and how that is taken back."""

import re
import uuid
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.capture import get_or_create
from memories.curation.change_sets import Changes
from memories.curation.facts.changing import lock_facts
from memories.curation.people.errors import PersonExists, PersonMerged
from memories.db import closed_indexes
from memories.exceptions import Conflict, InvalidInput, NotFound, PersonRestricted, PreconditionFailed
from memories.models import APIKey, Change, ChangeSet, EndUser, Fact, FactRevision, StoreItem
from memories.store import assigning

LONGEST_ID = 255
CHANGE_ID = "change_id"
Table, Action = Change.Table, Change.Action
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def change_external_id(*, end_user: EndUser, external_id: str, keeps_old: bool, actor: Actor, now: datetime) -> EndUser:
    """Give the person another id; `end_user` is the row as the caller saw it.

    With `keeps_old` the old id becomes an alias of the person. Without, it is free: the next turn under it makes a new
    person, and facts and API keys for the old id are for the new one. An alias of this person can become their id.

    Errors: InvalidInput, PersonExists, PreconditionFailed (another id by now), PersonRestricted, PersonMerged,
    NotFound, Erased (the new id is that of an erased person).
    """
    check_id(external_id)
    old = end_user.external_id
    changes = Changes(actor=actor, now=now)
    with transaction.atomic():
        person = _locked(end_user, Q(pk__in=[]) if keeps_old else _addressed(end_user.tenant_id, old))
        if external_id == old:
            return person
        changes.record_row_change(Table.PERSON, Action.CHANGED, person.pk, before={"external_id": old})
        _rename(person, external_id, changes)
        if keeps_old:
            EndUser.objects.create(
                tenant=person.tenant, external_id=old, merged_into=person, created_at=now, last_seen_at=now
            )
        else:
            assigning.readdress(person, old, external_id)
            # Looked up again: before the lock somebody may have named the id.
            addressed = Fact.objects.filter(_addressed(person.tenant_id, old), tenant=person.tenant)
            _readdress(addressed, APIKey.objects.filter(tenant=person.tenant, user_id=old), old, external_id, changes)
        changes.counts.update(facts=len(changes.facts), kept=int(keeps_old))
        changes.record(CHANGE_ID, person, counts=dict(changes.counts))
    return person


def lock_for_undo(done: ChangeSet) -> None:
    """Lock the person, and whose facts the change readdressed or name the present id. Errors: as restore_ids()."""
    if done.end_user:
        ours = Q(pk__in=FactRevision.objects.filter(change_set=done.pk).values("fact"))
        _locked(done.end_user, ours | _addressed(done.tenant_id, done.end_user.external_id))


def restore_ids(done: ChangeSet, changes: Changes) -> None:
    """Give the person the id of before, after the facts are what they were.

    The present id is free then, so what was made for it since is for the other one.
    Errors: Conflict (changed again since), PersonExists, PreconditionFailed, PersonRestricted, PersonMerged, NotFound.
    """
    if done.end_user is None:
        raise NotFound
    person, new = done.end_user, done.end_user.external_id
    if ChangeSet.objects.filter(end_user=person, verb=CHANGE_ID, undone_at=None, pk__gt=done.pk).exists():
        raise Conflict(_("The id was changed again since. Undo that change first."))
    rows = done.changes.filter(table=Table.PERSON)
    old = rows.get(action=Action.CHANGED).before["external_id"]
    _rename(person, old, changes)
    for row in rows.filter(action=Action.DELETED):
        EndUser.objects.create(pk=row.uuid, tenant=person.tenant, external_id=new, merged_into=person, **row.before)
    edited = FactRevision.objects.filter(fact=OuterRef("pk"), before__has_key="allowed_users")
    since = Q(created_at__gte=done.created_at) | Exists(edited.filter(created_at__gte=done.created_at))
    named = Fact.objects.filter(_addressed(person.tenant_id, new), tenant=person.tenant)
    facts = named.filter(since).exclude(pk__in=changes.facts)
    ours = Q(pk__in=done.changes.filter(table=Table.KEY).values("uuid"))
    keys = APIKey.objects.filter(ours | Q(created_at__gte=done.created_at), tenant=person.tenant, user_id=new)
    if not EndUser.objects.filter(tenant=person.tenant, external_id=new).exists():
        assigning.readdress(person, new, old)
    _readdress(facts, keys, new, old, changes)


def _locked(end_user: EndUser, addressed: Q) -> EndUser:
    """Lock the person, as the caller saw them, and whose facts of the tenant these are, in one order."""
    readers = Fact.objects.filter(addressed, tenant=end_user.tenant_id)
    wanted = Q(pk=end_user.pk) | Q(pk__in=readers.values("end_user"))
    people = EndUser.objects.select_for_update(of=("self",)).select_related("tenant").filter(wanted)
    person = next((one for one in people.order_by("pk") if one.pk == end_user.pk), None)
    if person is None:
        raise NotFound
    if person.merged_into_id:
        raise PersonMerged
    if person.restricted_at:
        raise PersonRestricted
    if person.external_id != end_user.external_id:
        raise PreconditionFailed
    return person


def _rename(person: EndUser, external_id: str, changes: Changes) -> None:
    """Give the locked person this id, which may be an alias of theirs. Errors: PersonExists, Erased."""
    holder = EndUser.objects.filter(tenant=person.tenant, external_id=external_id).first()
    if holder:
        # The id of somebody who was merged stays theirs.
        if holder.merged_into_id != person.pk or ChangeSet.objects.filter(merged=holder, undone_at=None).exists():
            raise PersonExists
        moments = {name: getattr(holder, name).isoformat() for name in ("created_at", "last_seen_at")}
        changes.record_row_change(Table.PERSON, Action.DELETED, holder.pk, before=moments)
        # Items under that id would go with the alias.
        StoreItem.objects.filter(end_user=holder).update(end_user=person)
        holder.delete()
    person.external_id = external_id
    try:
        with transaction.atomic():
            person.save(update_fields=["external_id"])
    except IntegrityError as error:
        # Somebody took the id between the look and the write.
        raise PersonExists from error
    get_or_create.apply_return_policy(person, now=changes.now)


def _addressed(tenant_id: uuid.UUID, external_id: str) -> Q:
    """The facts that name this reader now. The index holds only facts that name any."""
    named = Q(allowed_users__contains=[external_id]) & ~Q(allowed_users=[])
    return closed_indexes.opened(named, Fact.objects.all(), tenant_id=tenant_id, most=None)


def _readdress(facts: QuerySet[Fact], keys: QuerySet[APIKey], old: str, new: str, changes: Changes) -> None:
    """Change the readers of these facts and the person of these API keys from the old id to the new one.

    Otherwise whoever gets the old id could read these facts and use these keys.
    """
    for fact in lock_facts(list(facts.values_list("pk", flat=True))):
        with changes.changing(fact, CHANGE_ID):
            fact.allowed_users = list(dict.fromkeys(new if name == old else name for name in fact.allowed_users))
    for pk in list(keys.values_list("pk", flat=True)):
        changes.record_row_change(Table.KEY, Action.CHANGED, pk, before={"user_id": old})
    keys.update(user_id=new)


def check_id(external_id: str, *, at: str = "external_id") -> None:
    """Errors: InvalidInput for what the API does not take as an id."""
    if not 1 <= len(external_id) <= LONGEST_ID or not external_id.strip() or _CONTROL.search(external_id):
        raise InvalidInput.at(at, _("An id has 1 to 255 characters and no control characters."))
