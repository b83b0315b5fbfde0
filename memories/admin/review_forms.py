"""The forms of the decisions about a review item: each carries the versions that the operator was looking at."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from memories import curation
from memories.admin.episode_forms import EpisodeWords
from memories.admin.fields import LineField, TextField
from memories.admin.page import VerbForm
from memories.admin.wording import CUT_OUT
from memories.audit import Actor
from memories.curation import Seen
from memories.models import Category, Episode, Fact, ReviewItem

LONGEST_TEXT = 2000


class ReasonField(LineField):
    """Why, for colleagues; the browser does not remember what was typed here."""

    def __init__(self, **kwargs: Any) -> None:
        widget = UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "list": "review-reasons"})
        given = {"label": gettext_lazy("Reason"), "help_text": gettext_lazy("Kept with the decision, for colleagues.")}
        super().__init__(widget=widget, max_length=LONGEST_TEXT, **given, **kwargs)


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
        curation.approve_item(**self.target(), actor=actor, now=now)
        return _("Approved.")


class EditItemForm(EpisodeWords, ItemForm):
    """What is proposed in the operator's own words: a fact, a section of the profile, or a poor episode."""

    content = TextField(label=gettext_lazy("What it says"), max_length=LONGEST_TEXT, rows=3)
    category = forms.ChoiceField(
        label=gettext_lazy("Category"), choices=Category.choices, widget=UnfoldAdminSelectWidget
    )
    section = TextField(label=gettext_lazy("What the section says"), rows=6)
    FACT = ("content", "category")

    def __init__(self, data: Any = None, *, record: ReviewItem) -> None:
        super().__init__(data, record=record)
        of_section = ("section",) if record.proposed_section else ()
        fitting = self.WORDS if record.episode else of_section or self.FACT
        for name in {*self.WORDS, *self.FACT, "section"} - {*fitting}:
            del self.fields[name]
        if record.episode:
            self.begin_with(record.episode)
        elif record.proposed_section:
            self.fields["section"].initial = record.proposed_section.after
        elif record.fact:
            self.fields["content"].initial = record.fact.content
            self.fields["category"].initial = record.fact.category

    def said(self) -> dict[str, Any]:
        """What the operator wrote, by the names of the memory's fields."""
        if "section" in self.cleaned_data:
            return {"summary": self.cleaned_data["section"]}
        names = self.WORDS if self.record.episode else self.FACT
        return {name: self.cleaned_data[name] for name in names}

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        item = curation.approve_edited(**self.target(), changes=self.said(), actor=actor, now=now)
        done = _("Approved: what you wrote is served, as an operator's word.")
        cut = item.fact is not None and item.fact.content != self.said()["content"].strip()
        return f"{done}{CUT_OUT if cut else self.told(item.episode)}"


class KeepBothForm(ItemForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        curation.keep_both(**self.target(), actor=actor, now=now)
        return _("Both are kept.")


class RejectItemForm(ItemForm):
    reason = ReasonField()

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        curation.reject_item(**self.target(), reason=self.cleaned_data["reason"], actor=actor, now=now)
        return _("Rejected.")


class MergeForm(ItemForm):
    survivor = forms.ChoiceField(label=gettext_lazy("Which one stays"), widget=UnfoldAdminRadioSelectWidget)
    content = TextField(label=gettext_lazy("What it says"), max_length=LONGEST_TEXT, rows=3)
    category = forms.ChoiceField(
        label=gettext_lazy("Category"), choices=Category.choices, widget=UnfoldAdminSelectWidget
    )
    reason = ReasonField()

    def __init__(self, data: Any = None, *, record: ReviewItem) -> None:
        super().__init__(data, record=record)
        pair = (("new", record.fact), ("known", record.known))
        self.facts: dict[str, Fact] = {name: fact for name, fact in pair if fact}
        labels = {"new": _("The proposed one"), "known": _("The known one")}
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
        done = _("Merged: what stays is an operator's word.")
        return f"{done}{CUT_OUT if cut else ''}"


class UndoForm(VerbForm):
    version = forms.IntegerField(widget=forms.HiddenInput)
    record: ReviewItem

    def __init__(self, data: Any = None, *, record: ReviewItem) -> None:
        super().__init__(data, record=record)
        self.fields["version"].initial = record.version

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        version = self.cleaned_data["version"]
        curation.undo_decision(item_id=self.record.pk, expected_version=version, actor=actor, now=now)
        return _("The decision is taken back: it waits again.")
