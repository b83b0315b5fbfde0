"""Keys state a section of the profile: it is written, or proposed while the old text is still served."""

from datetime import datetime

from django.db import transaction

from memories import conf, content_policy
from memories.audit import Actor
from memories.content_policy import Road
from memories.curation.profile.sections import locked_section, write_profile_section
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.exceptions import RefusedBefore
from memories.facts import review_items
from memories.facts.review_items import REASON_OF_FLAG, REASON_OF_TRUST, ReviewQuestion
from memories.models import ActorKind, EndUser, ProfileRevision, ProfileSection, ReviewItem
from memories.models.folding import fold
from memories.text.secrets.scrubbing import scrubbed_text
from memories.trust import rank

Reason = ReviewItem.Reason
# The newest proposals of a section that a further one is compared with.
_COMPARED = 50


def state_profile_section(
    *,
    end_user: EndUser,
    section: str,
    summary: str,
    actor: Actor,
    now: datetime,
    agent_id: str = "",
    write_trust: WriteTrust = AS_USER,
) -> ReviewItem | None:
    """Write one section of the profile, or of the agent's, as a key states it, without secrets.

    A text that speaks to a model, or of a writer that is not believed, is only proposed: then the review item that
    waits for an operator is returned. The same text waits once.

    Errors: as write_profile_section(); RefusedBefore when an operator turned it down;
    ContentForbidden.
    """
    text = scrubbed_text(summary)
    with transaction.atomic():
        row = locked_section(end_user.pk, section, agent_id, actor=actor, expected_version=None)
        if text == row.summary:
            return None
        # Before it is written or proposed.
        content_policy.check(row.end_user.tenant, Road.PROFILE, [text])
        reason = _why_proposed(row, text, write_trust)
        if reason is None:
            write_profile_section(
                end_user=end_user,
                section=section,
                summary=text,
                actor=actor,
                now=now,
                agent_id=agent_id,
                trust=write_trust.trust,
            )
            return None
        return _asked_before(row, text) or _propose(row, text, reason, actor=actor, now=now)


def _why_proposed(row: ProfileSection, text: str, write_trust: WriteTrust) -> Reason | None:
    flags = guarding.flags_of_text(text, write_trust)
    if flags:
        return next(reason for flag, reason in REASON_OF_FLAG.items() if flag in flags)
    if not write_trust.is_believed(conf.rules(row.end_user.tenant)):
        return REASON_OF_TRUST[write_trust.trust]
    if not row.summary:
        return None
    if write_trust.imports:
        return Reason.IMPORTED
    # What a key wrote may be the user's own word, which no agent replaces; and no agent empties what the user said.
    outranked = rank(write_trust.trust) < rank(row.trust) and (row.actor_kind == ActorKind.KEY or not text)
    return Reason.OUTRANKED if outranked else None


def _asked_before(row: ProfileSection, text: str) -> ReviewItem | None:
    """The open review item about the same text, if any. Errors: RefusedBefore when it was rejected."""
    proposals = ProfileRevision.objects.of(row).filter(version=None)
    newest = proposals.values_list("pk", "after")[:_COMPARED]
    same = [pk for pk, proposed in newest if fold(proposed) == fold(text)]
    last = ReviewItem.objects.filter(proposed_section__in=same).order_by("-created_at", "-pk").first()
    if last and last.state == ReviewItem.State.REJECTED:
        raise RefusedBefore
    return last if last and last.state == ReviewItem.State.OPEN else None


def _propose(row: ProfileSection, text: str, reason: Reason, *, actor: Actor, now: datetime) -> ReviewItem:
    proposal = ProfileRevision.objects.create(
        tenant_id=row.tenant_id,
        end_user=row.end_user,
        agent_id=row.agent_id,
        section=row.section,
        version=None,
        verb="write",
        actor_kind=actor.kind,
        actor_id=actor.id,
        before=row.summary,
        after=text,
        created_at=now,
    )
    review_items.ask(ReviewQuestion(reason, proposed_section=proposal), run=None, now=now)
    return ReviewItem.objects.get(proposed_section=proposal)
