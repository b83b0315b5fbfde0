"""The forms of the decisions about a review item: each carries the versions that the operator was looking at."""

from datetime import datetime
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminSelectWidget

from memories import curation
from memories.admin.episode_forms import EpisodeWords
from memories.admin.fields import LineField, TextField
from memories.admin.page import VerbForm
from memories.admin.wording import CUT_OUT
from memories.audit import Actor
from memories.curation import Seen
from memories.models import Category, Episode, Fact, ReviewItem

REASON = "Kept with the decision, for your colleagues."


class ItemForm(VerbForm):
    """The versions of the item and of what it is about, as they were shown."""

    version = forms.IntegerField(widget=forms.HiddenInput)
    fact_version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    known_version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    episode_version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    record: ReviewItem

    def __init__(self, data: Any = None, *, record: ReviewItem) -> None:
        super().__init__(data, record=record)
        for name, version in self._now_there(record).items():
            self.fields[name].initial = version

    def see(self, record: ReviewItem) -> None:
        super().see(record)
        self.data = {**self.data.dict(), **self._now_there(record)}  # type: ignore[attr-defined]

    def target(self) -> dict[str, Any]:
        """What every decision is told: which item, and what was seen of it."""
        seen = {
            about.pk: self.cleaned_data[f"{name}_version"] for name, about in self._about(self.record).items() if about
        }
        return {"item_id": self.record.pk, "seen": Seen(self.cleaned_data["version"], seen)}

    @staticmethod
    def _about(record: ReviewItem) -> dict[str, Fact | Episode | None]:
        return {"fact": record.fact, "known": record.known, "episode": record.episode}

    def _now_there(self, record: ReviewItem) -> dict[str, int]:
        seen = {f"{name}_version": about.version for name, about in self._about(record).items() if about}
        return {"version": record.version, **seen}


class ApproveItemForm(ItemForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        return f"{curation.approve_item(**self.target(), actor=actor, now=now)} is approved."


class EditItemForm(EpisodeWords, ItemForm):
    """A poor episode in the operator's own words."""

    def __init__(self, data: Any = None, *, record: ReviewItem) -> None:
        super().__init__(data, record=record)
        self.begin_with(record.episode)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        item = curation.approve_edited(**self.target(), changes=self.said(), actor=actor, now=now)
        return f"{item} is approved: what you wrote is served, as an operator's word.{self.told(item.episode)}"


class KeepBothForm(ItemForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        return f"{curation.keep_both(**self.target(), actor=actor, now=now)}: both are kept."


class RejectItemForm(ItemForm):
    reason = LineField(max_length=2000, help_text=REASON)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        reason = self.cleaned_data["reason"]
        return f"{curation.reject_item(**self.target(), reason=reason, actor=actor, now=now)} is rejected."


class MergeForm(ItemForm):
    survivor = forms.ChoiceField(label="Which one stays", widget=UnfoldAdminRadioSelectWidget)
    content = TextField(label="What it says", max_length=2000, rows=3)
    category = forms.ChoiceField(choices=Category.choices, widget=UnfoldAdminSelectWidget)
    reason = LineField(max_length=2000, help_text=REASON)

    def __init__(self, data: Any = None, *, record: ReviewItem) -> None:
        super().__init__(data, record=record)
        pair = (("new", record.fact), ("known", record.known))
        self.facts: dict[str, Fact] = {name: fact for name, fact in pair if fact}
        labels = {"new": "The proposed one", "known": "The known one"}
        self.fields["survivor"].choices = [(name, labels[name]) for name in self.facts]  # type: ignore[attr-defined]
        self.fields["survivor"].initial = "new"
        if record.fact:
            self.fields["content"].initial = record.fact.content
            self.fields["category"].initial = record.fact.category

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        said = {name: self.cleaned_data[name] for name in ("content", "category", "reason")}
        survivor = self.facts[self.cleaned_data["survivor"]].pk
        item = curation.merge_items(**self.target(), **said, survivor=survivor, actor=actor, now=now)
        kept = item.fact if item.fact_id == survivor else item.known
        cut = kept is not None and kept.content != said["content"].strip()
        return f"{item} is merged: what stays is an operator's word.{CUT_OUT if cut else ''}"


class UndoForm(VerbForm):
    version = forms.IntegerField(widget=forms.HiddenInput)
    record: ReviewItem

    def __init__(self, data: Any = None, *, record: ReviewItem) -> None:
        super().__init__(data, record=record)
        self.fields["version"].initial = record.version

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        version = self.cleaned_data["version"]
        item = curation.undo_decision(item_id=self.record.pk, expected_version=version, actor=actor, now=now)
        return f"The decision is taken back: {item} waits again."
