"""The forms of a fact's verbs: each carries the version that the operator was looking at."""

import uuid
from copy import deepcopy
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminSelectWidget

from memories.admin.recall.live_context import next_context
from memories.admin.site import reasons
from memories.admin.site.fields import DayInput, TextField
from memories.admin.site.mentions import mention
from memories.admin.site.page import Button, VerbForm, VersionForm
from memories.admin.site.reasons import ReasonField
from memories.admin.site.wording import CUT_OUT
from memories.audit import Actor
from memories.curation.facts.approving import stated_earlier
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.facts.keeping import expire_fact, lock_fact, pin_fact, unlock_fact, unpin_fact
from memories.curation.facts.publishing import promote_fact, publish_fact, withdraw_fact
from memories.curation.facts.restoring import restore_fact
from memories.curation.facts.splitting import before_merge, is_merged, split_fact
from memories.curation.reverting import revert
from memories.curation.review.suggestions import UNAPPROVED, approve_fact, reconsider_fact, reject_fact
from memories.exceptions import ConfirmationNeeded, MemoryHubError, NotFound
from memories.models import Category, Fact, MemoryScope, Status

LONGEST_TEXT = 2000
FOR_COLLEAGUES = _("Kept with the revision, for your colleagues.")
# What approving does to a fact that was rejected, or after whose time something else was said.
APPROVED_AFTER_ALL = _("The rejection is withdrawn. The fact is served from now on, with its current trust.")
KEEP_AS_HISTORY = _("Keep as history")
AS_HISTORY = _("Something else was said later, and stays. This is kept as what held until then, and not served.")
HISTORY_AFTER_ALL = _(
    "The rejection is withdrawn. Something else was said later, and stays. This is kept as what held until then, and "
    "not served."
)
FLAGS_OVERRULED = (
    ("instructions", _("It looks like an instruction to a model.")),
    ("possible_secret", _("It may contain a password or a key.")),
)


def end_of(day: date) -> datetime:
    """When this day is over in the operator's time zone, which is in force."""
    return timezone.make_aware(datetime.combine(day + timedelta(days=1), time.min))


class FactForm(VersionForm):
    """A verb of `curation` that takes the fact, its version and a reason. The page shows them in this order."""

    record: Fact
    # Of facts that have the verb.
    statuses: ClassVar[frozenset[str]] = frozenset(Status.LIVE)

    def offered(self) -> Button | None:
        return self.button if self.record.status in self.statuses else None

    def arguments(self) -> dict[str, Any]:
        given = {"fact_id": self.record.pk, "expected_version": self.cleaned_data["version"]}
        return {**given, "reason": self.cleaned_data["reason"]}


class ReconsiderForm(FactForm):
    statuses = frozenset({Status.REJECTED})
    button = Button(
        "reconsider",
        "undo",
        _("Reconsider"),
        _("Reconsider this fact"),
        _("The rejection is withdrawn. The fact waits for review again and can be suggested again."),
    )
    reason = ReasonField(*reasons.RECONSIDER)
    calls, done = staticmethod(reconsider_fact), _("%(fact)s is pending again and can be suggested again.")


class ApproveForm(FactForm):
    statuses = frozenset(UNAPPROVED)
    button = Button(
        "approve",
        "check",
        _("Approve"),
        _("Approve this fact"),
        _("It is served from now on, with its current trust."),
    )
    reason = ReasonField(*reasons.APPROVE)
    calls, done = staticmethod(approve_fact), _("%(fact)s is approved and served from now on.")

    def offered(self) -> Button | None:
        if self.button is None or self.record.status not in self.statuses:
            return None
        is_rejected = self.record.status == Status.REJECTED
        if not stated_earlier([self.record], now=timezone.now()):
            return replace(self.button, text=APPROVED_AFTER_ALL) if is_rejected else self.button
        text = HISTORY_AFTER_ALL if is_rejected else AS_HISTORY
        return replace(self.button, label=KEEP_AS_HISTORY, submit=KEEP_AS_HISTORY, text=text)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        fact = approve_fact(**self.arguments(), actor=actor, now=now)
        if fact.status == Status.ACTIVE:
            return str(self.done) % {"fact": mention(fact)}
        late = gettext("%(fact)s is approved. Something else was said later, so it is kept as what held until then.")
        return late % {"fact": mention(fact)}


class RejectForm(FactForm):
    statuses = frozenset({Status.PENDING})
    button = Button(
        "reject",
        "close",
        _("Reject"),
        _("Reject this fact"),
        _("It is never served and not suggested again."),
        danger=True,
    )
    reason = ReasonField(*reasons.REJECT)
    calls, done = staticmethod(reject_fact), _("%(fact)s is rejected and will not be suggested again.")


class SplitForm(FactForm):
    """A fact that was merged into another becomes one of its own again.

    The form carries the versions of both, and what the other fact says without it.
    """

    button = Button(
        "split",
        "call_split",
        _("Split off"),
        _("Split off as a separate fact"),
        _("It is served again as it was before the merge."),
    )
    calls, done = staticmethod(split_fact), _("%(fact)s is a separate fact again.")
    survivor_version = forms.IntegerField(widget=forms.HiddenInput)
    rest = TextField(
        label=_("Text of the other fact from now on"),
        required=False,
        max_length=LONGEST_TEXT,
        rows=2,
        help_text=_("Leave empty to keep it as it is. Your text counts as confirmed by an operator."),
    )
    reason = ReasonField(*reasons.SPLIT)

    def values_of(self, record: Fact) -> dict[str, Any]:
        values = super().values_of(record)
        if record.superseded_by and is_merged(record):
            values |= {"survivor_version": record.superseded_by.version, "rest": before_merge(record)}
        return values

    def arguments(self) -> dict[str, Any]:
        data = self.cleaned_data
        expected = {self.record.pk: data["version"]}
        if self.record.superseded_by_id:
            expected[self.record.superseded_by_id] = data["survivor_version"]
        return {"fact_id": self.record.pk, "expected": expected, "rest": data["rest"], "reason": data["reason"]}

    def offered(self) -> Button | None:
        return self.button if "survivor_version" in self.initial else None


class CorrectForm(FactForm):
    button = Button(
        "correct",
        "edit",
        _("Correct"),
        _("Correct this fact"),
        _("Your text counts as confirmed by an operator: jobs and applications cannot change it."),
    )
    content = TextField(label=_("Corrected text"), max_length=LONGEST_TEXT, rows=3)
    category = forms.ChoiceField(label=_("Category"), choices=Category.choices, widget=UnfoldAdminSelectWidget)
    reason = ReasonField(*reasons.CORRECT)
    # What was served before the correction.
    context_before: str

    def values_of(self, record: Fact) -> dict[str, Any]:
        return {**super().values_of(record), "content": record.content, "category": record.category}

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        changes = {name: self.cleaned_data[name] for name in ("content", "category")}
        self.context_before = next_context(self.record)
        fact = correct_fact(**self.arguments(), **changes, tenant=None, actor=actor, now=now)
        done = gettext("%(fact)s is corrected. Jobs and applications can no longer change it.") % {
            "fact": mention(fact)
        }
        return f"{done}{CUT_OUT if fact.content != changes['content'] else ''}"


class UnpinForm(FactForm):
    button = Button(
        "unpin",
        "keep_off",
        _("Unpin"),
        _("Unpin this fact"),
        _("It can fade again, unless an operator confirmed it or its category does not fade."),
    )
    reason = ReasonField(*reasons.RELEASE)
    calls, done = staticmethod(unpin_fact), _("%(fact)s is unpinned.")

    def offered(self) -> Button | None:
        return super().offered() if self.record.pinned else None


class PinForm(FactForm):
    button = Button(
        "pin",
        "keep",
        _("Pin"),
        _("Pin this fact"),
        _("It does not fade, is never archived for capacity, and applications cannot change it."),
    )
    reason = ReasonField(*reasons.KEEP)
    calls, done = staticmethod(pin_fact), _("%(fact)s is pinned. It does not fade, and applications cannot change it.")

    def offered(self) -> Button | None:
        return None if self.record.pinned else super().offered()


class UnlockForm(FactForm):
    button = Button(
        "unlock",
        "lock_open",
        _("Unlock"),
        _("Unlock this fact"),
        _("Jobs and applications can change it again, unless an operator confirmed it."),
    )
    reason = ReasonField(*reasons.RELEASE)
    calls, done = staticmethod(unlock_fact), _("%(fact)s is unlocked.")

    def offered(self) -> Button | None:
        return super().offered() if self.record.locked else None


class LockForm(FactForm):
    button = Button(
        "lock",
        "lock",
        _("Lock"),
        _("Lock this fact"),
        _("Jobs and applications cannot change it, and it does not expire."),
    )
    reason = ReasonField(*reasons.KEEP)
    calls, done = staticmethod(lock_fact), _("%(fact)s is locked. Jobs and applications cannot change it.")

    def offered(self) -> Button | None:
        return None if self.record.locked else super().offered()


class ExpireForm(FactForm):
    button = Button(
        "expire",
        "event_busy",
        _("Expire"),
        _("Set expiry"),
        _("After that day it is no longer served and goes to the trash."),
    )
    last_day = forms.DateField(
        label=_("Last day"),
        required=False,
        widget=DayInput,
        help_text=_("In your time zone. Leave empty if it does not expire."),
    )
    reason = ReasonField(*reasons.EXPIRE)

    def values_of(self, record: Fact) -> dict[str, Any]:
        end = record.expires_at
        last_day = timezone.localdate(end - timedelta(seconds=1)).isoformat() if end else None
        return {**super().values_of(record), "last_day": last_day}

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        day = self.cleaned_data["last_day"]
        fact = expire_fact(**self.arguments(), expires_at=end_of(day) if day else None, actor=actor, now=now)
        if day:
            done = gettext("%(fact)s will expire. It is served until then and goes to the trash afterwards.")
        else:
            done = gettext("%(fact)s no longer expires.")
        return done % {"fact": mention(fact)}

    def offered(self) -> Button | None:
        return None if self.record.locked else super().offered()


class PromoteForm(FactForm):
    button = Button(
        "promote",
        "group",
        _("Share with all agents"),
        _("Make it the end user's own"),
        _("It is served to all agents of this end user."),
    )
    reason = ReasonField(*reasons.PROMOTE)
    calls, done = (
        staticmethod(promote_fact),
        _("%(fact)s is the end user's own now. It is served to all of their agents."),
    )

    def offered(self) -> Button | None:
        return super().offered() if self.record.agent_id else None


class WithdrawForm(FactForm):
    button = Button(
        "withdraw",
        "public_off",
        _("Withdraw"),
        _("Make private again"),
        _("It is then served only to agents of its own end user."),
    )
    reason = ReasonField(*reasons.WITHDRAW)
    calls, done = (
        staticmethod(withdraw_fact),
        _("%(fact)s is private again. It is served only to agents of its own end user."),
    )

    def offered(self) -> Button | None:
        return super().offered() if self.record.scope == MemoryScope.PUBLIC else None


class PublishForm(FactForm):
    """If the text has flags, the form comes back with one box to tick for each.

    Other people's agents are served it: this one needs its reason.
    """

    statuses = frozenset({Status.ACTIVE})
    button = Button(
        "publish",
        "public",
        _("Make public"),
        _("Make this fact public"),
        _(
            "It is served to the agents of all end users of this tenant, without its owner. Jobs and applications "
            "cannot change it."
        ),
    )
    reason = ReasonField(*reasons.PUBLISH, required=True, help_text=FOR_COLLEAGUES)

    # The agents of all people of the tenant read it from the next moment on.
    needs_fresh_password = True
    calls, done = (
        staticmethod(publish_fact),
        _("%(fact)s is public. It is served to the agents of all end users of the tenant."),
    )
    confirmed = forms.MultipleChoiceField(
        label=_("Make it public nevertheless"),
        required=False,
        choices=FLAGS_OVERRULED,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=_("Tick each box to confirm, and give the reason why."),
    )

    def __init__(self, data: Any = None, *, record: Fact) -> None:
        super().__init__(data, record=record)
        if not data or "confirmed" not in data:
            del self.fields["confirmed"]

    def arguments(self) -> dict[str, Any]:
        return {**super().arguments(), "confirmed": self.cleaned_data.get("confirmed", [])}

    def refuse(self, error: MemoryHubError) -> None:
        self.fields.pop("confirmed", None)
        if not isinstance(error, ConfirmationNeeded):
            super().refuse(error)
            return
        self.fields["confirmed"] = field = deepcopy(self.base_fields["confirmed"])
        field.choices = [  # type: ignore[attr-defined]
            (flag, label) for flag, label in FLAGS_OVERRULED if flag in error.flags
        ]
        self.add_error(None, gettext("Every end user's agents would be served this text. Nothing changed yet."))

    def offered(self) -> Button | None:
        return None if self.record.scope == MemoryScope.PUBLIC else super().offered()


class ForgetForm(FactForm):
    button = Button(
        "forget",
        "delete",
        _("Forget"),
        _("Forget this fact"),
        _("It goes to the trash, leaves every context immediately and won't be learned again. You can restore it."),
        danger=True,
    )
    reason = ReasonField(*reasons.FORGET)
    calls = partial(forget_fact, tenant=None)
    done = _("%(fact)s is forgotten. It won't be learned again. You can restore it on its page.")
    # What was served before.
    context_before: str

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        self.context_before = next_context(self.record)
        return super().carry_out(actor=actor, now=now)


class RestoreForm(FactForm):
    statuses = frozenset({Status.TRASHED})
    button = Button(
        "restore",
        "restore_from_trash",
        _("Restore"),
        _("Restore this fact"),
        _("It is served again and can be learned again."),
    )
    reason = ReasonField(*reasons.RESTORE)
    earlier = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        earlier = self.cleaned_data["earlier"]
        fact = restore_fact(**self.arguments(), tenant=None, version=earlier, actor=actor, now=now)
        if earlier:
            done = gettext("%(fact)s is restored to version %(version)s.")
            return done % {"fact": mention(fact), "version": earlier}
        return gettext("%(fact)s is restored.") % {"fact": mention(fact)}


class UndoMergeForm(VerbForm):
    """Takes back the latest merge that the fact survived."""

    merge = forms.UUIDField(widget=forms.HiddenInput)
    record: Fact

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        merge: uuid.UUID = self.cleaned_data["merge"]
        if not self.record.change_sets.filter(pk=merge, verb="merge").exists():
            raise NotFound
        revert(change_set=merge, actor=actor, now=now)
        done = gettext("Merge undone. %(fact)s and the facts merged into it are restored.")
        return done % {"fact": mention(self.record)}
