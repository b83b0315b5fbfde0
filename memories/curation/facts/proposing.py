"""What an agent proposes about a fact: other words for it, or to forget it. Until an operator decides it stays."""

import uuid
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.changing import is_own
from memories.curation.facts.forgetting import forget_fact
from memories.curation.statements.write_trust import WriteTrust
from memories.curation.writing import locked_row
from memories.exceptions import Conflict, PersonRestricted
from memories.facts import review_items
from memories.facts.review_items import ReviewQuestion
from memories.models import Fact, MemoryScope, ReviewItem, Status, Tenant


def propose_correction(
    *, fact: Fact, content: str, actor: Actor, now: datetime, write_trust: WriteTrust, reason: str = ""
) -> Fact:
    """Suggest another text for an active fact: it waits, whoever says it, until an operator chooses between the two.

    Errors: Conflict, and those of add_fact().
    """
    if fact.scope == MemoryScope.PUBLIC:
        raise Conflict(_("Everybody is served this memory: only an operator can correct it."))
    draft = FactDraft(
        content,
        fact.category,
        importance=fact.importance,
        # The key stays, so that the approved text takes this fact's place; the value was that of the old text.
        key=fact.key,
        tags=fact.tags,
        scope=fact.scope,
        agent_id=fact.agent_id,
        allowed_users=fact.allowed_users,
        allowed_roles=fact.allowed_roles,
        expires_at=fact.expires_at,
    )
    person = fact.end_user
    proposed = add_fact(
        end_user=person, draft=draft, actor=actor, now=now, reason=reason, write_trust=write_trust, corrects=fact
    )
    return proposed.row


def ask_to_forget(*, fact_id: uuid.UUID, tenant: Tenant, actor: Actor, now: datetime) -> bool:
    """Forget at once what this key stated and nobody else has touched since; of anything else ask an operator.

    Returns whether it is forgotten. A second request asks nothing new. Errors: NotFound, Conflict, PersonRestricted.
    """
    with transaction.atomic():
        fact = locked_row(Fact, fact_id, tenant=tenant)
        if fact.end_user.restricted_at:
            raise PersonRestricted
        if is_own(fact, actor):
            forget_fact(fact_id=fact_id, tenant=tenant, actor=actor, now=now)
            return True
        if fact.status != Status.ACTIVE:
            raise Conflict(_("This memory is not active any more, or not yet: there is nothing to forget."))
        # Whether it still holds may be asked already.
        if not ReviewItem.objects.waiting().filter(known=fact, fact=None).exists():
            review_items.ask(ReviewQuestion(ReviewItem.Reason.FORGET_ASKED, known=fact), run=None, now=now)
            audit.record(actor=actor, verb="ask_to_forget", target=fact, now=now)
    return False
