"""The forms of a fact's verbs: each carries the version that the operator was looking at."""

import uuid
from copy import deepcopy
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminSelectWidget

from memories.admin.recall.live_context import next_context
from memories.admin.site import reasons
from memories.admin.site.fields import DayInput, TextField
from memories.admin.site.mentions import mention
from memories.admin.site.page import VerbForm, VersionForm
from memories.admin.site.reasons import ReasonField
from memories.admin.site.wording import CUT_OUT
from memories.audit import Actor
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.facts.keeping import expire_fact, lock_fact, pin_fact, unlock_fact, unpin_fact
from memories.curation.facts.publishing import promote_fact, publish_fact, withdraw_fact
from memories.curation.facts.restoring import restore_fact
from memories.curation.facts.splitting import before_merge, is_merged, split_fact
from memories.curation.reverting import revert
from memories.curation.review.suggestions import approve_fact, reconsider_fact, reject_fact
from memories.exceptions import ConfirmationNeeded, MemoryHubError, NotFound
from memories.models import Category, Fact, Status

LONGEST_TEXT = 2000
FOR_COLLEAGUES = _("Kept with the revision, for your colleagues.")
FLAGS_OVERRULED = (
    ("instructions", _("It looks like an instruction to a model.")),
    ("possible_secret", _("It may contain a password or a key.")),
)


def end_of(day: date) -> datetime:
    """When this day is over in the operator's time zone, which is in force."""
    return timezone.make_aware(datetime.combine(day + timedelta(days=1), time.min))


class FactForm(VersionForm):
    """A verb of `curation` that takes the fact, its version and a reason."""

    record: Fact

    def arguments(self) -> dict[str, Any]:
        given = {"fact_id": self.record.pk, "expected_version": self.cleaned_data["version"]}
        return {**given, "reason": self.cleaned_data["reason"]}


class ApproveForm(FactForm):
    reason = ReasonField(*reasons.APPROVE)
    calls, done = staticmethod(approve_fact), _("%(fact)s is approved and served from now on.")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        fact = approve_fact(**self.arguments(), actor=actor, now=now)
        if fact.status == Status.ACTIVE:
            return str(self.done) % {"fact": mention(fact)}
        late = gettext("%(fact)s is approved. Something else was said later, so it is kept as what held until then.")
        return late % {"fact": mention(fact)}


class RejectForm(FactForm):
    reason = ReasonField(*reasons.REJECT)
    calls, done = staticmethod(reject_fact), _("%(fact)s is rejected and will not be suggested again.")


class ReconsiderForm(FactForm):
    reason = ReasonField(*reasons.RECONSIDER)
    calls, done = staticmethod(reconsider_fact), _("%(fact)s is pending again and can be suggested again.")


class PinForm(FactForm):
    reason = ReasonField(*reasons.KEEP)
    calls, done = staticmethod(pin_fact), _("%(fact)s is pinned. It does not fade, and applications cannot change it.")


class UnpinForm(FactForm):
    reason = ReasonField(*reasons.RELEASE)
    calls, done = staticmethod(unpin_fact), _("%(fact)s is unpinned.")


class LockForm(FactForm):
    reason = ReasonField(*reasons.KEEP)
    calls, done = staticmethod(lock_fact), _("%(fact)s is locked. Jobs and applications cannot change it.")


class UnlockForm(FactForm):
    reason = ReasonField(*reasons.RELEASE)
    calls, done = staticmethod(unlock_fact), _("%(fact)s is unlocked.")


class PublishForm(FactForm):
    """If the text has flags, the form comes back with one box to tick for each.

    Other people's agents are served it: this one needs its reason.
    """

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


class PromoteForm(FactForm):
    reason = ReasonField(*reasons.PROMOTE)
    calls, done = (
        staticmethod(promote_fact),
        _("%(fact)s is the end user's own now. It is served to all of their agents."),
    )


class WithdrawForm(FactForm):
    reason = ReasonField(*reasons.WITHDRAW)
    calls, done = (
        staticmethod(withdraw_fact),
        _("%(fact)s is private again. It is served only to agents of its own end user."),
    )


class CorrectForm(FactForm):
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


class ExpireForm(FactForm):
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


class ForgetForm(FactForm):
    reason = ReasonField(*reasons.FORGET)
    calls = partial(forget_fact, tenant=None)
    done = _("%(fact)s is forgotten. It won't be learned again. You can restore it on its page.")
    # What was served before.
    context_before: str

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        self.context_before = next_context(self.record)
        return super().carry_out(actor=actor, now=now)


class RestoreForm(FactForm):
    reason = ReasonField(*reasons.RESTORE)
    earlier = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        earlier = self.cleaned_data["earlier"]
        fact = restore_fact(**self.arguments(), tenant=None, version=earlier, actor=actor, now=now)
        if earlier:
            done = gettext("%(fact)s is restored to version %(version)s.")
            return done % {"fact": mention(fact), "version": earlier}
        return gettext("%(fact)s is restored.") % {"fact": mention(fact)}


class SplitForm(FactForm):
    """A fact that was merged into another becomes one of its own again.

    The form carries the versions of both, and what the other fact says without it.
    """

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
