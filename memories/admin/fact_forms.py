"""The forms of a fact's verbs: each carries the version that the operator was looking at."""

from datetime import datetime
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget

from memories import curation
from memories.admin.fields import LineField, TextField
from memories.admin.page import VerbForm
from memories.admin.wording import CUT_OUT
from memories.audit import Actor
from memories.models import Category, Fact


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
        """What every verb is told: which fact, and the version it is about."""
        return {"fact_id": self.record.pk, "tenant": None, "expected_version": self.cleaned_data["version"]}


class CorrectForm(FactForm):
    content = TextField(label="What is right", max_length=2000, rows=3)
    category = forms.ChoiceField(choices=Category.choices, widget=UnfoldAdminSelectWidget)
    reason = LineField(max_length=2000, help_text="Kept with the revision, for your colleagues.")

    def __init__(self, data: Any = None, *, record: Fact) -> None:
        super().__init__(data, record=record)
        self.fields["content"].initial = record.content
        self.fields["category"].initial = record.category

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        said = {name: self.cleaned_data[name] for name in ("content", "category", "reason")}
        fact = curation.correct_fact(**self.target(), **said, actor=actor, now=now)
        cut = fact.content != said["content"]
        return f"{fact} is corrected: no job and no key changes it from now on.{CUT_OUT if cut else ''}"


class ApproveForm(FactForm):
    reason = LineField(required=False, max_length=2000, help_text="Optional; kept with the revision.")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        given = {"fact_id": self.record.pk, "expected_version": self.cleaned_data["version"]}
        fact = curation.approve_fact(**given, reason=self.cleaned_data["reason"], actor=actor, now=now)
        return f"{fact} is approved: it is served from now on."


class RejectForm(FactForm):
    reason = LineField(required=False, max_length=2000, help_text="Optional; kept with the revision.")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        given = {"fact_id": self.record.pk, "expected_version": self.cleaned_data["version"]}
        fact = curation.reject_fact(**given, reason=self.cleaned_data["reason"], actor=actor, now=now)
        return f"{fact} is rejected, and is not suggested again."


class ReconsiderForm(FactForm):
    reason = LineField(required=False, max_length=2000, help_text="Optional; kept with the revision.")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        given = {"fact_id": self.record.pk, "expected_version": self.cleaned_data["version"]}
        fact = curation.reconsider_fact(**given, reason=self.cleaned_data["reason"], actor=actor, now=now)
        return f"{fact} waits for review again, and may be suggested again."


class PublishForm(FactForm):
    reason = LineField(max_length=2000, help_text="Kept with the revision, for your colleagues.")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        given = {"fact_id": self.record.pk, "expected_version": self.cleaned_data["version"]}
        fact = curation.publish_fact(**given, reason=self.cleaned_data["reason"], actor=actor, now=now)
        return f"{fact} is public: it is told to the agents of all people of the tenant."


class WithdrawForm(FactForm):
    reason = LineField(required=False, max_length=2000, help_text="Optional; kept with the revision.")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        given = {"fact_id": self.record.pk, "expected_version": self.cleaned_data["version"]}
        fact = curation.withdraw_fact(**given, reason=self.cleaned_data["reason"], actor=actor, now=now)
        return f"{fact} is private again: only its own person's agents are told it."


class ForgetForm(FactForm):
    reason = LineField(max_length=2000, help_text="Kept with the revision, for your colleagues.")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        curation.forget_fact(**self.target(), reason=self.cleaned_data["reason"], actor=actor, now=now)
        return f"{self.record} is in the trash and is refused from now on. Restore it below if that was wrong."


class RestoreForm(FactForm):
    earlier = forms.IntegerField(required=False, widget=forms.HiddenInput)
    reason = LineField(required=False, max_length=2000, help_text="Optional; kept with the revision.")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        earlier = self.cleaned_data["earlier"]
        said = {"version": earlier, "reason": self.cleaned_data["reason"]}
        fact = curation.restore_fact(**self.target(), **said, actor=actor, now=now)
        return f"{fact} is restored to what it said in version {earlier}." if earlier else f"{fact} is restored."
