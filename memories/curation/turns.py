"""Deletes what a turn says, or passages of it, with what was made of it.

The row keeps its number and a keyed hash, so that the same message is not stored again. What rests on the turn alone
goes; what rests on more loses this evidence. An operator's word and what was stated outright stay.
"""

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, Func, OuterRef, Q, QuerySet, Value
from django.utils.translation import gettext as _

from memories import audit, conf
from memories.audit import Actor
from memories.curation.sessions import STATED
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.trajectories import redact_in_session, texts_of
from memories.db import quotes
from memories.exceptions import AlreadyRedacted, InvalidInput, NotFound, PersonRestricted
from memories.facts import review_items
from memories.models import (
    ActorKind,
    Attachment,
    Dream,
    EndUser,
    Episode,
    Fact,
    FactEvidence,
    LoggedContext,
    ProfileRevision,
    ProfileSection,
    Role,
    SentBlock,
    Session,
    SessionQueue,
    Tenant,
    Trust,
    Turn,
    TurnVector,
    WorkingMemory,
)
from memories.queue import queue_rows, window_queue
from memories.scoring import terms

MARK = "[redacted]"
# What holds the words of a message.
_TEXTS = ("content", "parts", "name", "tool_calls", "metadata")


@dataclass(frozen=True)
class LockedTurn:
    """A turn with the rows of its session, all locked."""

    turn: Turn
    session: Session
    queue: SessionQueue
    window: WorkingMemory

    @property
    def is_spoken(self) -> bool:
        """Whether summaries and episodes are made of such turns."""
        return self.turn.role in (Role.USER, Role.ASSISTANT)


def redact_turn(
    *,
    turn_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    passages: Sequence[str] = (),
    once: bool = False,
    write_trust: WriteTrust = AS_USER,
) -> uuid.UUID:
    """Delete the passages from a turn, or without any all that it says. What is gone already changes nothing. Returns
    the id of the person whose turn it is.

    What is in flight and may have read it, or what was made of it, is thrown away and made anew without it. Errors:
    NotFound, PersonRestricted for a key, InvalidInput for a passage that a turn as it was posted does not have,
    ReviewNeeded where the `write_trust` may not end it,
    AlreadyRedacted where all was gone and `once` is asked: of several callers one deletes it, and the others know.
    """
    with transaction.atomic():
        place = lock_turn(turn_id, tenant)
        turn, session = place.turn, place.session
        if session.end_user.restricted_at and not actor.is_operator:
            raise PersonRestricted
        if turn.role == Role.USER:
            guarding.check_outranks(Trust.USER, write_trust)
        digest, said = turn.digest or turn.content_digest, passages or texts_of(turn)
        if not (_cut(turn, passages) if passages else _empty(turn)):
            if once:
                raise AlreadyRedacted
            return turn.end_user_id
        turn.digest, turn.redacted_at = digest, now
        turn.terms = terms.pack(turn.own_text) if turn.is_searchable else None
        turn.save()
        TurnVector.objects.filter(turn=turn).delete()
        redact_in_session(session, said, mark=MARK, chosen=bool(passages), now=now)
        if not passages:
            # With their passages; a worker that reads one finds no row.
            Attachment.objects.filter(turn=turn).delete()
        session.redactions += 1
        if turn.is_searchable:
            # The embedder goes back to it; vectors that are there stay.
            session.embedded_number = min(session.embedded_number, turn.number - 1)
        session.save(update_fields=["redactions", "embedded_number"])
        counts = {
            "facts": _delete_facts(place, actor=actor, now=now, write_trust=write_trust),
            "sections": _empty_sections(turn, actor=actor, now=now),
            "episodes": _delete_episodes(place, actor=actor, now=now),
        }
        # A question, or a context, may repeat it; what is not logged or kept yet is refused by the generation.
        LoggedContext.objects.filter(end_user__in=EndUser.objects.with_aliases(session.end_user_id)).update(
            query="", memory=""
        )
        SentBlock.objects.filter(end_user__in=EndUser.objects.with_aliases(session.end_user_id)).delete()
        # Work on other sessions may have read what was made of it: an extraction, upkeep, an export.
        EndUser.objects.filter(pk=session.end_user_id).update(generation=F("generation") + 1)
        stop_work(place)
        audit.record(
            actor=actor, verb="redact", target=turn, object_id=turn.pk, tenant=session.tenant, now=now, counts=counts
        )
        return turn.end_user_id


def lock_turn(turn_id: uuid.UUID, tenant: Tenant | None) -> LockedTurn:
    """Lock the rows in the order of everybody else: queue, working memory, session, person, turn. Errors: NotFound."""
    turns = Turn.objects.filter(pk=turn_id)
    if tenant is not None:
        turns = turns.filter(tenant=tenant)
    session_id = turns.values_list("session", flat=True).first()
    if session_id is None:
        raise NotFound
    queue = SessionQueue.objects.with_clock().select_for_update(of=("self",)).filter(pk=session_id).first()
    window = WorkingMemory.objects.select_for_update(of=("self",)).filter(pk=session_id).first()
    sessions = Session.objects.select_for_update(of=("self",)).select_related("tenant")
    session = sessions.filter(pk=session_id).first()
    if queue is None or window is None or session is None:
        raise NotFound
    # No other session's extraction can add evidence to a fact between our look and its deletion.
    session.end_user = EndUser.objects.select_for_update(no_key=True).get(pk=session.end_user_id)
    turn = turns.select_for_update(of=("self",)).first()
    if turn is None:
        raise NotFound
    return LockedTurn(turn, session, queue, window)


def _empty(turn: Turn) -> bool:
    """Delete all of it; False when that was done before. Whose call a tool answered stays: it is an id."""
    before = [getattr(turn, name) for name in _TEXTS], turn.redacted_at is None
    turn.content, turn.parts, turn.name, turn.tool_calls, turn.metadata = "", None, "", None, {}
    turn.own = None
    # Nobody has to judge it any more.
    turn.flagged = False
    return before != ([getattr(turn, name) for name in _TEXTS], False)


def _cut(turn: Turn, passages: Sequence[str]) -> bool:
    """Mark the passages in all of its texts; False when they are gone already. Errors: InvalidInput."""
    found = False
    # The longest first: a shorter one may be a part of it.
    for at, passage in sorted(enumerate(passages), key=lambda one: -len(one[1])):
        cut = {name: _without(getattr(turn, name), passage) for name in _TEXTS}
        changes = any(cut[name] != getattr(turn, name) for name in _TEXTS)
        is_within = any(passage in other for other in passages if other != passage)
        if not (changes or is_within or turn.redacted_at):
            raise InvalidInput.at(f"/texts/{at}", _("The turn does not say this."), code="not_in_turn")
        if turn.own is not None:
            turn.own = _moved(turn.own, turn.content, passage)
        for name, value in cut.items():
            setattr(turn, name, value)
        found = found or changes
    return found


def _moved(spans: list[list[int]], text: str, passage: str) -> list[list[int]]:
    """The spans of the text in what is left of it without the passage; a mark goes to those that had a part of it."""
    places = [found.start() for found in re.finditer(re.escape(passage), text)]
    less = len(passage) - len(MARK)

    def to(place: int, *, is_end: bool) -> int:
        for before, start in enumerate(places):
            if place <= start:
                return place - before * less
            if place < start + len(passage):
                return start - before * less + (len(MARK) if is_end else 0)
        return place - len(places) * less

    return [[to(start, is_end=False), to(end, is_end=True)] for start, end in spans]


def _without(value: Any, passage: str) -> Any:
    match value:
        case str():
            return value.replace(passage, MARK)
        case list():
            return [_without(one, passage) for one in value]
        case dict():
            return {name: _without(one, passage) for name, one in value.items()}
    return value


def _delete_facts(place: LockedTurn, *, actor: Actor, now: datetime, write_trust: WriteTrust) -> int:
    """Delete the facts that rest on this turn alone, and its quotes in all others; returns how many facts.

    A fact of a reflection was made of the episodes that go with the turn: all evidence in their ranges goes.
    """
    turn = place.turn
    cited = FactEvidence.objects.filter(fact=OuterRef("pk"))
    goes = Q(turn=turn)
    for first, last in _episodes_of(place).values_list("first_number", "last_number"):
        reflected = Fact.objects.reflected().filter(end_user=turn.end_user_id)
        goes |= Q(session=place.session, turn_number__range=(first, last), fact__in=reflected.values("pk"))
    evidence = list(FactEvidence.objects.filter(goes).values_list("pk", flat=True))
    here = Fact.objects.filter(Exists(cited.filter(pk__in=evidence)), end_user=turn.end_user_id)
    # The lock shows us a fact that an operator has made binding meanwhile.
    list(here.select_for_update(of=("self",)).order_by("pk").values_list("pk"))
    elsewhere = Exists(cited.exclude(pk__in=evidence))
    alone = here.filter(~elsewhere, binding=False).exclude(extractor__in=STATED).select_related("tenant")
    gone = list(alone.order_by("pk"))
    for fact in gone:
        guarding.check_ends(fact, write_trust)
    review_items.flag_lost_evidence(list(here.reflected().values_list("pk", flat=True)), now=now)
    quotes.forget(turn.tenant_id, [turn.pk])
    FactEvidence.objects.filter(pk__in=evidence).delete()
    review_items.detach_conflicts([fact.pk for fact in gone])
    for fact in gone:
        audit.record(actor=actor, verb="delete", target=fact, now=now)
    Fact.objects.filter(pk__in=[fact.pk for fact in gone]).delete()
    return len(gone)


def _empty_sections(turn: Turn, *, actor: Actor, now: datetime) -> int:
    """Empty sections of the profile that rest on this turn alone, now or in an earlier version; returns how many now.

    Other sections lose this evidence. An extraction may write them anew from other turns.
    """
    resting = Q(extraction__session=turn.session_id, evidence__contains=[turn.number])
    sections = ProfileSection.objects.select_for_update(of=("self",)).filter(resting, end_user=turn.end_user_id)
    rows = [row for row in sections.order_by("pk") if not row.binding and row.actor_kind == ActorKind.RUN]
    alone = [row for row in rows if set(row.evidence) == {turn.number}]
    revisions = ProfileRevision.objects.filter(end_user=turn.end_user_id)
    made = revisions.filter(resting, evidence__len=1)
    # A proposal goes with its question.
    made.filter(version=None).delete()
    gone = {(row.agent_id, row.section, row.summary) for row in alone}
    for agent_id, section, text in gone | set(made.values_list("agent_id", "section", "after")):
        of_section = revisions.filter(agent_id=agent_id, section=section)
        of_section.filter(after=text).update(after="")
        of_section.filter(before=text).update(before="")
    for row in alone:
        before = ProfileSection(summary="", binding=row.binding)
        row.summary, row.version, row.updated_at = "", row.version + 1, now
        row.extraction, row.evidence, row.actor_kind = None, [], actor.kind
        row.save()
        audit.revise_section(row=row, verb="redact", actor=actor, before=before, now=now)
    less = Func(F("evidence"), Value(turn.number), function="array_remove")
    for model in (ProfileSection, ProfileRevision):
        model._default_manager.filter(resting, end_user=turn.end_user_id).update(evidence=less)
    return len(alone)


def _episodes_of(place: LockedTurn) -> QuerySet[Episode]:
    """The episodes that were made of the turn, but for an operator's word and stated ones."""
    if not place.is_spoken:
        return Episode.objects.none()
    number = place.turn.number
    episodes = Episode.objects.filter(session=place.session, first_number__lte=number, last_number__gte=number)
    return episodes.filter(binding=False).exclude(extractor__in=STATED)


def _delete_episodes(place: LockedTurn, *, actor: Actor, now: datetime) -> int:
    """Delete the episodes that were made of it; returns how many. The session's last one is made anew."""
    window = place.window
    episodes = _episodes_of(place).select_for_update(of=("self",))
    gone = list(episodes.select_related("tenant").order_by("pk"))
    for episode in gone:
        audit.record(actor=actor, verb="delete", target=episode, now=now)
        if episode.last_number == window.episode_number:
            window.episode_number, window.episodes_made = episode.first_number - 1, window.episodes_made - 1
    Dream.objects.doubt([episode.pk for episode in gone], now=now)
    Episode.objects.filter(pk__in=[episode.pk for episode in gone]).delete()
    return len(gone)


def stop_work(place: LockedTurn) -> None:
    """Throw away what workers may have read of it, and let them begin again; forget a summary that may tell it."""
    turn, session, queue, window = place.turn, place.session, place.queue, place.window
    if queue.lease_token and turn.number > queue.extracted_number:
        queue_rows.release(queue)
        queue.save()
    if place.is_spoken:
        rules = conf.rules(session.tenant)
        window_queue.read_again(window, session, first_number=turn.number, rules=rules, now=queue.clock)
    elif window.lease_token:
        queue_rows.release(window)
    window.save()
