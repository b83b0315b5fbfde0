"""What operators note on a review item for each other. It is about a person, and is exported and erased with them."""

import uuid
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.writing import lock_person
from memories.exceptions import InvalidInput, NotFound
from memories.models import ReviewItem, ReviewNote
from memories.text.secrets.redaction import redact_text


def add_note(*, item_id: uuid.UUID, text: str, actor: Actor, now: datetime) -> ReviewNote:
    """Note the text, without secrets, on an item, decided or not. Errors: NotFound, InvalidInput."""
    text = redact_text(text)[0].strip()
    if not text:
        raise InvalidInput.at("text", _("Enter a note."))
    with transaction.atomic():
        item = _locked(item_id)
        note = ReviewNote.objects.create(
            tenant=item.tenant, item=item, text=text, actor_kind=actor.kind, actor_id=actor.id, created_at=now
        )
        audit.record(actor=actor, verb="note", target=item, now=now)
    return note


def delete_note(*, item_id: uuid.UUID, note_id: uuid.UUID, actor: Actor, now: datetime) -> None:
    """The operator deletes a note of their own; one that is gone leaves no trace. Errors: NotFound."""
    with transaction.atomic():
        item = _locked(item_id)
        own = ReviewNote.objects.filter(pk=note_id, item=item, actor_kind=actor.kind, actor_id=actor.id)
        if own.delete()[0]:
            audit.record(actor=actor, verb="delete_note", target=item, now=now)


def _locked(item_id: uuid.UUID) -> ReviewItem:
    """Lock the person, so that an erasure comes before or after, and find the item. Errors: NotFound."""
    found = ReviewItem.objects.filter(pk=item_id)
    lock_person(found.values_list("end_user", flat=True).first())
    item = found.select_related("tenant").first()
    if item is None:
        raise NotFound
    return item
