"""The forms by which operators keep facts, let them go, say until when they hold, and take merges back."""

import uuid
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import curation
from memories.admin.fact_forms import OPTIONAL, FactForm, PlainForm
from memories.admin.fields import DayInput, LineField, TextField
from memories.admin.naming import called
from memories.admin.page import VerbForm
from memories.audit import Actor
from memories.curation.splitting import before_merge, is_merged
from memories.exceptions import NotFound
from memories.models import Fact


class PinForm(PlainForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        fact = curation.pin_fact(**self.target(), actor=actor, now=now)
        return _("%(fact)s is pinned: it does not fade, and no key changes it.") % {"fact": called(fact)}


class UnpinForm(PlainForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        fact = curation.unpin_fact(**self.target(), actor=actor, now=now)
        return _("%(fact)s is not pinned any more.") % {"fact": called(fact)}


class LockForm(PlainForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        fact = curation.lock_fact(**self.target(), actor=actor, now=now)
        return _("%(fact)s is locked: no job and no key changes it in any way.") % {"fact": called(fact)}


class UnlockForm(PlainForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        fact = curation.unlock_fact(**self.target(), actor=actor, now=now)
        return _("%(fact)s is not locked any more.") % {"fact": called(fact)}


def end_of(day: date) -> datetime:
    """When this day is over in the operator's time zone, which is in force."""
    return timezone.make_aware(datetime.combine(day + timedelta(days=1), time.min))


class ExpireForm(FactForm):
    last_day = forms.DateField(
        label=gettext_lazy("Last day"),
        required=False,
        widget=DayInput,
        help_text=gettext_lazy("In your time zone. Empty: it holds for ever."),
    )
    reason = LineField(label=gettext_lazy("Reason"), required=False, max_length=2000, help_text=OPTIONAL)

    def __init__(self, data: Any = None, *, record: Fact) -> None:
        super().__init__(data, record=record)
        if record.expires_at:
            self.fields["last_day"].initial = timezone.localdate(record.expires_at - timedelta(seconds=1)).isoformat()

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        day = self.cleaned_data["last_day"]
        fact = curation.expire_fact(**self.target(), expires_at=end_of(day) if day else None, actor=actor, now=now)
        if day:
            return _("%(fact)s expires: it is served until then and goes to the trash afterwards.") % {
                "fact": called(fact)
            }
        return _("%(fact)s does not expire any more.") % {"fact": called(fact)}


class SplitForm(FactForm):
    """The fact and the one that it is part of, both as they were seen, and what is left to say for the other."""

    survivor_version = forms.IntegerField(widget=forms.HiddenInput)
    rest = TextField(
        label=gettext_lazy("What the other fact says from now on"),
        required=False,
        max_length=2000,
        rows=2,
        help_text=gettext_lazy("Empty: it stays as it is. What you write is binding."),
    )
    reason = LineField(label=gettext_lazy("Reason"), required=False, max_length=2000, help_text=OPTIONAL)

    def __init__(self, data: Any = None, *, record: Fact) -> None:
        super().__init__(data, record=record)
        if record.superseded_by and is_merged(record):
            self.fields["survivor_version"].initial = record.superseded_by.version
            self.fields["rest"].initial = before_merge(record)

    def see(self, record: Fact) -> None:
        super().see(record)
        if record.superseded_by:
            self.data = {**self.data, "survivor_version": record.superseded_by.version}

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        said = self.cleaned_data
        seen = {self.record.pk: said["version"]}
        if self.record.superseded_by_id:
            seen[self.record.superseded_by_id] = said["survivor_version"]
        given: dict[str, Any] = {"seen": seen, "rest": said["rest"], "reason": said["reason"]}
        fact = curation.split_fact(fact_id=self.record.pk, **given, actor=actor, now=now)
        return _("%(fact)s is a fact of its own again.") % {"fact": called(fact)}


class UndoMergeForm(VerbForm):
    """The latest merge that the fact outlived."""

    merge = forms.UUIDField(widget=forms.HiddenInput)
    record: Fact

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        merge: uuid.UUID = self.cleaned_data["merge"]
        if not self.record.merges.filter(pk=merge).exists():
            raise NotFound
        fact = curation.undo_fact_merge(merge_id=merge, actor=actor, now=now)
        return _("The merge is taken back: %(fact)s and what it had taken in are what they were.") % {
            "fact": called(fact)
        }
