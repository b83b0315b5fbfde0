"""Visibility: only operators make a fact public to all people of the tenant, or private again."""

import uuid
from collections.abc import Collection
from datetime import datetime

from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.facts.changing import changing_fact
from memories.exceptions import Conflict
from memories.models import Fact, MemoryScope, Status


def publish_fact(
    *,
    fact_id: uuid.UUID,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    reason: str = "",
    confirmed: Collection[str] = (),
) -> Fact:
    """An operator makes an active fact public. It becomes binding: else a key could change what everybody is served.

    Errors: NotFound, PreconditionFailed, Conflict; ConfirmationNeeded with the flags of its text, unless they are all
    `confirmed` and there is a reason.
    """
    with changing_fact(
        fact_id,
        None,
        "publish",
        actor=actor,
        now=now,
        expected_version=expected_version,
        reason=reason,
        confirmed=confirmed,
    ) as fact:
        if fact.status != Status.ACTIVE or fact.scope == MemoryScope.PUBLIC:
            raise Conflict(_("Only an active fact that is not yet public can be published."))
        fact.scope, fact.binding = MemoryScope.PUBLIC, True
    return fact


def withdraw_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator makes a public fact private to its person again; it stays binding. Errors: as publish_fact()."""
    with changing_fact(
        fact_id, None, "withdraw", actor=actor, now=now, expected_version=expected_version, reason=reason
    ) as fact:
        if fact.scope != MemoryScope.PUBLIC:
            raise Conflict(_("The fact is not public."))
        fact.scope = MemoryScope.PRIVATE
    return fact
