"""The forms of a fact's verbs: each carries the version that the operator was looking at."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from memories import curation
from memories.admin.fields import LineField, TextField
from memories.admin.naming import called
from memories.admin.page import VerbForm
from memories.admin.wording import CUT_OUT
from memories.audit import Actor
from memories.models import Category, Fact

FOR_COLLEAGUES = gettext_lazy("Kept with the revision, for your colleagues.")
OPTIONAL = gettext_lazy("Optional; kept with the revision.")


class FactForm(VerbForm):
    version = forms.IntegerField(widget=forms.HiddenInput)
    record: Fact

    def __init__(self, data: Any = None, *, record: Fact) -> None:
        super().__init__(data, record=record)
        self.fields["version"].initial = record.version

    def see(self, record: Fact) -> None:
        super().see(record)
        # Without this the next attempt would name the old version again and never be taken.
        self.data = {**self.data.dict(), "version": record.version}  # type: ignore[attr-defined]

    def target(self) -> dict[str, Any]:
        """What every verb is told: which fact, the version it is about, and why."""
        given = {"fact_id": self.record.pk, "expected_version": self.cleaned_data["version"]}
        return {**given, "reason": self.cleaned_data["reason"]}


class ReasonedForm(FactForm):
    """A verb that has to be explained."""

    reason = LineField(label=gettext_lazy("Reason"), max_length=2000, help_text=FOR_COLLEAGUES)


class PlainForm(FactForm):
    """A verb that may be explained."""

    reason = LineField(label=gettext_lazy("Reason"), required=False, max_length=2000, help_text=OPTIONAL)


class CorrectForm(FactForm):
    content = TextField(label=gettext_lazy("What is right"), max_length=2000, rows=3)
    category = forms.ChoiceField(
        label=gettext_lazy("Category"), choices=Category.choices, widget=UnfoldAdminSelectWidget
    )
    reason = LineField(label=gettext_lazy("Reason"), max_length=2000, help_text=FOR_COLLEAGUES)

    def __init__(self, data: Any = None, *, record: Fact) -> None:
        super().__init__(data, record=record)
        self.fields["content"].initial = record.content
        self.fields["category"].initial = record.category

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        said = {name: self.cleaned_data[name] for name in ("content", "category")}
        fact = curation.correct_fact(**self.target(), **said, tenant=None, actor=actor, now=now)
        done = _("%(fact)s is corrected: no job and no key changes it from now on.") % {"fact": called(fact)}
        return f"{done}{CUT_OUT if fact.content != said['content'] else ''}"


class ApproveForm(PlainForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        fact = curation.approve_fact(**self.target(), actor=actor, now=now)
        return _("%(fact)s is approved: it is served from now on.") % {"fact": called(fact)}


class RejectForm(PlainForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        fact = curation.reject_fact(**self.target(), actor=actor, now=now)
        return _("%(fact)s is rejected, and is not suggested again.") % {"fact": called(fact)}


class ReconsiderForm(PlainForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        fact = curation.reconsider_fact(**self.target(), actor=actor, now=now)
        return _("%(fact)s waits for review again, and may be suggested again.") % {"fact": called(fact)}


class PublishForm(ReasonedForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        fact = curation.publish_fact(**self.target(), actor=actor, now=now)
        return _("%(fact)s is public: it is told to the agents of all people of the tenant.") % {"fact": called(fact)}


class WithdrawForm(PlainForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        fact = curation.withdraw_fact(**self.target(), actor=actor, now=now)
        return _("%(fact)s is private again: only its own person's agents are told it.") % {"fact": called(fact)}


class ForgetForm(ReasonedForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        curation.forget_fact(**self.target(), tenant=None, actor=actor, now=now)
        return _("%(fact)s is in the trash and is refused from now on. Restore it below if that was wrong.") % {
            "fact": called(self.record)
        }


class RestoreForm(PlainForm):
    earlier = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        earlier = self.cleaned_data["earlier"]
        fact = curation.restore_fact(**self.target(), tenant=None, version=earlier, actor=actor, now=now)
        if earlier:
            told = {"fact": called(fact), "version": earlier}
            return _("%(fact)s is restored to what it said in version %(version)s.") % told
        return _("%(fact)s is restored.") % {"fact": called(fact)}
