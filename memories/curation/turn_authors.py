"""An operator says whose words a turn of role user holds (rules.md, 1.6), and what reads turns follows at once.

What was made of the turn stays: facts and episodes that rest on it. Extraction does not go back: a turn that it has
passed is found and recalled by its new author, and nothing more is taken from it.
"""

import json
import uuid
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from memories import audit, conf
from memories.audit import Actor
from memories.curation.change_sets import Action, Changes, Table
from memories.curation.sessions import STATED
from memories.curation.turns import LockedTurn, lock_turn, stop_work
from memories.exceptions import Conflict, NotFound, PreconditionFailed
from memories.models import Change, ChangeSet, Fact, FactEvidence, Role, Status, Turn, TurnVector
from memories.models.folding import text_digest
from memories.queue import session_queue
from memories.scoring import terms

CORRECT = "correct_author"
_WHOSE = ("author", "own", "is_doubtful")


def version_of_author(turn: Turn) -> int:
    """A turn has no version: a number stands for whose words it holds, and for the text in which `own` has places."""
    whose = [*(getattr(turn, name) for name in _WHOSE), turn.redacted_at and turn.redacted_at.isoformat()]
    return int.from_bytes(text_digest(json.dumps(whose))[:4]) >> 1


def correct_author(
    *,
    turn_id: uuid.UUID,
    author: str,
    actor: Actor,
    now: datetime,
    reason: str = "",
    expected_version: int | None = None,
) -> None:
    """Let all of a turn of role user be this author's words. What it says already changes nothing.

    `expected_version` is the version_of_author() that the operator saw. Errors: NotFound, PreconditionFailed, Conflict
    for a turn of another role: its role says whose it is.
    """
    with transaction.atomic():
        place = lock_turn(turn_id, None)
        turn, person = place.turn, place.session.end_user
        if turn.role != Role.USER:
            raise Conflict(_("Only turns of the role “user” can hold the words of several authors."))
        if expected_version is not None and expected_version != version_of_author(turn):
            raise PreconditionFailed
        before = {name: getattr(turn, name) for name in _WHOSE}
        if before == {"author": author, "own": None, "is_doubtful": False}:
            return
        _attribute(place, author=author, own=None, is_doubtful=False)
        changes = Changes(actor=actor, now=now, reason=reason)
        changes.record_row_change(Table.TURN, Action.CHANGED, turn.pk, version=version_of_author(turn), before=before)
        changes.save(CORRECT, person)
        audit.record(actor=actor, verb=CORRECT, target=turn, object_id=turn.pk, tenant=place.session.tenant, now=now)


def facts_resting_on(turn: Turn) -> QuerySet[Fact]:
    """The facts in use, or waiting for review, that rest on this turn alone, but for an operator's word."""
    cited = FactEvidence.objects.filter(fact=OuterRef("pk"))
    facts = Fact.objects.filter(Exists(cited.filter(turn=turn)), end_user=turn.end_user_id, status__in=Status.LIVE)
    return facts.filter(~Exists(cited.exclude(turn=turn)), binding=False).exclude(extractor__in=STATED)


def corrections_of(turn: Turn) -> QuerySet[ChangeSet]:
    """The corrections of its author, the newest first."""
    return ChangeSet.objects.filter(end_user=turn.end_user_id, verb=CORRECT, changes__uuid=turn.pk).order_by("-id")


def lock_for_undo(done: ChangeSet) -> None:
    """Lock the turns that it corrected, with the rows of their sessions. Errors: Conflict when one is gone."""
    for change in _corrected(done):
        _locked_again(change)


def put_authors_back(done: ChangeSet, _changes: Changes) -> None:
    """Let the turns be what they were. Errors: Conflict when one was corrected again or redacted since, or is gone."""
    for change in _corrected(done):
        place = _locked_again(change)
        if version_of_author(place.turn) != change.version:
            raise Conflict(_("This can no longer be undone, because the turn has changed since."))
        _attribute(place, **change.before)


def turns_of(done: ChangeSet) -> Iterable[Turn]:
    return Turn.objects.filter(pk__in=done.changes.filter(table=Table.TURN).values("uuid"))


def _corrected(done: ChangeSet) -> Iterable[Change]:
    return done.changes.filter(table=Table.TURN).order_by("pk")


def _locked_again(change: Change) -> LockedTurn:
    try:
        return lock_turn(change.uuid or uuid.UUID(int=0), None)
    except NotFound as error:
        raise Conflict(_("This can no longer be undone, because the turn is no longer stored.")) from error


def _attribute(place: LockedTurn, *, author: str, own: list[list[int]] | None, is_doubtful: bool) -> None:
    """Set whose words the locked turn holds. Indexes and the embedder read it again; work that may have read it as
    somebody else's is thrown away."""
    turn, session, queue = place.turn, place.session, place.queue
    turn.author, turn.own, turn.is_doubtful = author, own, is_doubtful
    turn.terms = terms.pack(turn.own_text) if turn.is_searchable else None
    # Each speaker is judged in its own way.
    turn.flagged = None
    turn.save(update_fields=[*_WHOSE, "terms", "flagged"])
    TurnVector.objects.filter(turn=turn).delete()
    session.redactions += 1
    session.embedded_number = min(session.embedded_number, turn.number - 1)
    session.save(update_fields=["redactions", "embedded_number"])
    stop_work(place)
    if turn.left_at and turn.number > queue.extracted_number:
        # Of a branch that was left extraction reads what the person said, and nothing else.
        queue.session = session
        session_queue.recount(queue, rules=conf.rules(session.tenant), now=queue.clock)
        queue.save()
