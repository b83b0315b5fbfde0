"""Who a fact is served to: operators alone make one public to all people of the tenant, or take that back."""

import uuid
from datetime import datetime

from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.change_sets import ChangeSet
from memories.curation.fact_changes import change_fact
from memories.exceptions import Conflict
from memories.models import Fact, MemoryScope, Status


def publish_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator makes an active fact public; it is binding from then on, or a key could change what all are told.

    Errors: NotFound, PreconditionFailed, Conflict.
    """

    def change(fact: Fact, _changes: ChangeSet) -> None:
        if fact.status != Status.ACTIVE or fact.scope == MemoryScope.PUBLIC:
            raise Conflict(_("Only an active fact that is not public yet can be made public."))
        fact.scope, fact.binding = MemoryScope.PUBLIC, True

    return change_fact(
        fact_id, None, "publish", change, actor=actor, now=now, expected_version=expected_version, reason=reason
    )


def withdraw_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator keeps a public fact to its person again; it stays binding. Errors: as publish_fact()."""

    def change(fact: Fact, _changes: ChangeSet) -> None:
        if fact.scope != MemoryScope.PUBLIC:
            raise Conflict(_("The fact is not public."))
        fact.scope = MemoryScope.PRIVATE

    return change_fact(
        fact_id, None, "withdraw", change, actor=actor, now=now, expected_version=expected_version, reason=reason
    )
