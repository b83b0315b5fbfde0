"""Facts that are stated outright, by a key or an operator, instead of being extracted."""

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from memories import conf
from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.facts import older
from memories.curation.facts.changing import lock_person
from memories.curation.facts.contradictions import Met, meet, protected_twin
from memories.curation.facts.readers import check_readers
from memories.curation.people.errors import PersonMerged
from memories.curation.review import item_states
from memories.curation.statements import guarding, provenance
from memories.curation.statements.provenance import NO_GROUNDS, Grounds, Rests
from memories.curation.statements.scrubbing import scrubbed_fact
from memories.curation.statements.voices import AS_USER, WriteTrust
from memories.exceptions import Conflict, DuplicateFact, InvalidInput, NotFound, PersonRestricted
from memories.facts import review_items
from memories.facts.review_items import REASON_OF_FLAG, ReviewQuestion
from memories.models import EndUser, Fact, FactQuerySet, MemoryScope, ReviewItem, Source, Status, Trust
from memories.models.folding import fold, text_digest
from memories.reconcile import neighbours
from memories.reconcile.changes import MOST_DUPLICATES
from memories.reconcile.gate import LONGEST_KEY
from memories.text.secrets.scrubbing import scrubbed_text
from memories.trust import rank

# Who is served a fact. Two facts with other readers are two, also where they say the same.
READERS = ("agent_id", "scope", "allowed_users", "allowed_roles")


@dataclass(frozen=True)
class FactDraft:
    """What a caller states about a person; confidence and importance are 0..1, empty text means none."""

    content: str
    category: str
    confidence: float = 0.9
    importance: float = 0.5
    key: str = ""
    value: str = ""
    tags: Sequence[str] = ()
    scope: str = MemoryScope.PRIVATE
    agent_id: str = ""
    allowed_users: Sequence[str] = ()
    allowed_roles: Sequence[str] = ()
    expires_at: datetime | None = None
    structured: dict[str, Any] | None = None
    external_id: str = ""


@dataclass(frozen=True)
class Stated:
    """What became of a statement: the fact, and whether it is a new one or one that was known in other words."""

    fact: Fact
    is_new: bool = True


def add_fact(
    *,
    end_user: EndUser,
    draft: FactDraft,
    actor: Actor,
    now: datetime,
    reason: str = "",
    voice: WriteTrust = AS_USER,
    grounds: Grounds = NO_GROUNDS,
    visible: FactQuerySet | None = None,
    corrects: Fact | None = None,
) -> Stated:
    """Store a stated fact, without secrets.

    The fact becomes active and supersedes what gave its key another value. A key's statement becomes a suggestion with
    a review item instead when an operator refused it before, when it contradicts an operator or is less certain than an
    existing fact, when it speaks to a model, or when its `voice` is not believed; turns that it cites only lower the
    voice. When it gives a key the value that it has, in other words, it confirms that fact (rules.md, 5.2). Facts that
    it is related to, or confirms, are among the `visible` ones; None: all of the person's. What `corrects` an active
    fact waits for an operator, whoever states it.

    Errors: InvalidInput (what it rests on, its readers), Conflict and NotFound (what it corrects), DuplicateFact with
    the id of the existing fact (its text, or its external id), RefusedBefore, PersonMerged, PersonRestricted.
    """
    draft = replace(draft, **scrubbed_fact(vars(draft)))
    fact = _unsaved(end_user, draft, grounds, actor=actor)
    # Before the lock: it may ask an endpoint.
    near = [] if draft.agent_id else neighbours.beside(person=end_user, statement=fact, now=now)
    changes = Changes(actor=actor, now=now, reason=reason)
    try:
        with transaction.atomic():
            _lock(end_user, grounds)
            check_readers(fact)
            rests = provenance.found(end_user, grounds, raw=fact.raw, visible=visible)
            voice = voice.lowered(rests.trusts)
            _attribute(fact, voice, grounds, actor=actor)
            stated_at = [turn.sent_at for turn in rests.turns]
            fact.begin(now=now, rules=conf.rules(end_user.tenant), stated_at=stated_at, valid_from=grounds.valid_from)
            changes.sweep(end_user, [text_digest(draft.content)], agent_id=draft.agent_id)
            if twin := _same_text(end_user, draft):
                raise DuplicateFact(fact_id=twin)
            check_own_id(fact)
            if not fact.binding and (word := protected_twin(end_user, fact)):
                raise DuplicateFact(fact_id=word.pk)
            waits = guarding.why_waits(fact, voice)
            met = meet(end_user, fact, actor=actor, now=now, waits=waits, related=rests.related)
            if corrects:
                _check_active(corrects)
                met = Met(reason=ReviewItem.Reason.PROPOSED, known=corrects)
            if existing := _existing_fact(fact, met, visible):
                _confirm(existing, fact, met, rests, changes)
                return Stated(existing, is_new=False)
            _store(fact, met, changes, stated_at=stated_at)
            rests.store(fact, now=now, quote=fact.raw)
            if fact.status == Status.ACTIVE:
                similar = [*met.agreeing, *_active(end_user, near, but=met.beaten)]
                # Whether it repeats one of these; the nearest are enough to ask about.
                for other in similar[:MOST_DUPLICATES]:
                    question = ReviewQuestion(ReviewItem.Reason.NOT_JUDGED, fact=fact, known=other)
                    review_items.ask(question, run=None, now=now)
    except IntegrityError as error:
        # Somebody stored the same text between the look above and our insert.
        raise DuplicateFact(fact_id=_same_text(end_user, draft)) from error
    return Stated(fact)


def folded_key(key: str) -> str:
    """As keys are stored and compared. Errors: InvalidInput (too long; folding makes some letters longer)."""
    folded = fold(key)
    if len(folded) > LONGEST_KEY:
        # Cut, it could equal another one.
        detail = _("Give a key of at most 100 characters. Some of these letters stand for several each.")
        raise InvalidInput.at("/key", detail, code="max_length")
    return folded


def check_own_id(fact: Fact) -> None:
    """The caller holds the person's row. Errors: DuplicateFact when another live fact of its agent has its external
    id."""
    if not fact.external_id:
        return
    live = Fact.objects.of(fact.tenant, fact.end_user).filter(status__in=[Status.ACTIVE, Status.PENDING])
    same = live.filter(agent_id=fact.agent_id, external_id=fact.external_id).exclude(pk=fact.pk)
    if taken := same.order_by("pk").values_list("pk", flat=True).first():
        raise DuplicateFact(_("The person already has a fact with this external_id."), fact_id=taken)


def _unsaved(end_user: EndUser, draft: FactDraft, grounds: Grounds, *, actor: Actor) -> Fact:
    stated = asdict(draft) | {name: list(getattr(draft, name)) for name in ("tags", "allowed_users", "allowed_roles")}
    del stated["content"]
    fact = Fact(
        tenant=end_user.tenant,
        end_user=end_user,
        **stated | {"key": folded_key(draft.key)},
        stated_confidence=draft.confidence,
        binding=actor.is_operator,
    )
    fact.raw = scrubbed_text(grounds.raw)
    fact.say(draft.content)
    return fact


def _lock(end_user: EndUser, grounds: Grounds) -> None:
    """Lock what the statement is about and rests on. Errors: PersonMerged, PersonRestricted."""
    provenance.lock_sessions(end_user, grounds.evidence)
    # Two statements about one key, or one and an extraction, follow each other.
    if lock_person(end_user.pk) != end_user.pk:
        raise PersonMerged
    if EndUser.objects.filter(pk=end_user.pk, restricted_at__isnull=False).exists():
        raise PersonRestricted


def _check_active(corrected: Fact) -> None:
    """Under the person's lock: somebody may have changed it meanwhile. Errors: NotFound, Conflict."""
    found = Fact.objects.filter(pk=corrected.pk, end_user=corrected.end_user).first()
    if found is None:
        raise NotFound
    if found.status != Status.ACTIVE:
        raise Conflict(_("This memory is not active any more, or not yet: there is nothing to correct."))


def _attribute(fact: Fact, voice: WriteTrust, grounds: Grounds, *, actor: Actor) -> None:
    """Set source, trust and flags. An operator's statement is binding, and nobody reviews it."""
    if actor.is_operator:
        fact.source, fact.trust, fact.extractor = Source.CORRECTED, Trust.OPERATOR, "operator"
    else:
        fact.source, fact.trust, fact.extractor = voice.source(grounds.source), voice.trust, voice.extractor
        fact.flags = list(guarding.flags_of_fact(fact, voice))


def _existing_fact(fact: Fact, met: Met, visible: FactQuerySet | None) -> Fact | None:
    """The active fact of the same readers that gives its key the same value in other words.

    An operator's statement is a fact of its own: it binds its words.
    """
    if met.reason or fact.binding:
        return None
    same = [one for one in met.agreeing if all(getattr(one, name) == getattr(fact, name) for name in READERS)]
    if visible is not None and same:
        seen = set(visible.filter(pk__in=[one.pk for one in same]).values_list("pk", flat=True))
        same = [one for one in same if one.pk in seen]
    # Of one that was replaced by now the later one is confirmed, as far as it says the same.
    return next(iter(sorted(same, key=lambda one: (not one.protected, one.status != Status.ACTIVE))), None)


def _confirm(existing: Fact, fact: Fact, met: Met, rests: Rests, changes: Changes) -> None:
    """The known fact was stated again: it keeps its text, and rests on what this statement rests on, too.

    An operator's fact, a locked one and one of more trust stay as they are (rules.md, 4.3 and 5.5).
    """
    if existing.protected or rank(fact.trust) < rank(existing.trust):
        return
    rules = conf.rules(existing.tenant)
    with changes.changing(existing, "reinforce"):
        existing.confirm(rules.confirmed_by)
        existing.stated_confidence = max(existing.stated_confidence, fact.stated_confidence)
        existing.mentions += 1
        existing.mention([fact.first_observed_at, fact.last_confirmed_at])
        existing.valid_from = min(existing.valid_from, fact.valid_from)
        if existing.expires_at:
            existing.expires_at = max(existing.expires_at, fact.expires_at) if fact.expires_at else None
        existing.trust = max(existing.trust, fact.trust, key=rank)
        # Else whoever stated it could not find it again.
        existing.external_id = existing.external_id or fact.external_id
    rests.store(existing, now=changes.now, quote=fact.raw)
    for loser in met.beaten:
        changes.supersede(loser, by=existing)
    if met.place and (before := met.place.before) and existing is met.place.after and not before.protected:
        older.end(before, changes, by=existing)
    changes.remove_refusals(existing.end_user, met.forgiven)
    item_states.settle(changes)
    changes.record("reinforce", existing)


def _store(fact: Fact, met: Met, changes: Changes, *, stated_at: Sequence[datetime]) -> None:
    """Write the fact and supersede what it beats, as one change set; ask why it waits, if so; write the audit event.

    One that is older than what is known is written closed.
    """
    if met.place and not met.reason:
        older.insert(fact, met.place, changes, stated_at=stated_at)
        item_states.settle(changes)
        changes.record("add", fact)
        return
    fact.status = Status.PENDING if met.reason else Status.ACTIVE
    changes.insert([fact])
    for loser in met.beaten:
        changes.supersede(loser, by=fact, ended=fact.valid_from)
    changes.remove_refusals(fact.end_user, met.forgiven)
    item_states.settle(changes)
    if met.reason:
        questions = [ReviewQuestion(met.reason, fact=fact, known=met.known)]
        # A flag is asked about by itself when the fact waits for something else, too.
        flagged = [REASON_OF_FLAG[flag] for flag in fact.flags]
        questions += [ReviewQuestion(reason, fact=fact) for reason in flagged if reason != met.reason]
        review_items.ask_all(questions, run=None, now=changes.now)
    changes.record("add", fact)


def _active(end_user: EndUser, ids: Collection[uuid.UUID], *, but: Iterable[Fact]) -> list[Fact]:
    """Those of the facts that are still active, the nearest first."""
    if not ids:
        return []
    facts = Fact.objects.of(end_user.tenant, end_user).filter(pk__in=ids, status=Status.ACTIVE)
    found = facts.exclude(pk__in=[fact.pk for fact in but]).in_bulk()
    return [found[fact_id] for fact_id in ids if fact_id in found]


def _same_text(end_user: EndUser, draft: FactDraft) -> uuid.UUID | None:
    live = Fact.objects.of(end_user.tenant, end_user).filter(status__in=[Status.ACTIVE, Status.PENDING])
    same = live.filter(agent_id=draft.agent_id, content_hash=text_digest(draft.content))
    return same.values_list("pk", flat=True).first()
