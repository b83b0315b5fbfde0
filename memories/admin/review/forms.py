"""The forms of the decisions on a review item: each carries the versions that the operator was looking at."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminSelectWidget

from memories.admin.episodes.forms import EpisodeWords
from memories.admin.site import reasons
from memories.admin.site.fields import TextField
from memories.admin.site.page import VerbForm, VersionForm
from memories.admin.site.reasons import ReasonField
from memories.admin.site.wording import CUT_OUT
from memories.audit import Actor
from memories.curation.review.assigning import give_back_item, take_item
from memories.curation.review.deciding import ExpectedVersions
from memories.curation.review.decisions import approve_edited, approve_item, keep_both, merge_items, reject_item
from memories.curation.review.notes import add_note, delete_note
from memories.curation.review.undo import undo_decision
from memories.models import Category, Episode, Fact, ReviewItem

LONGEST_TEXT = 2000
FOR_COLLEAGUES = gettext_lazy("Optional; kept with the decision, for colleagues.")


class ItemForm(VersionForm):
    """A decision, with the versions of the item and of the memories that it is about."""

    fact_version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    known_version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    episode_version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    record: ReviewItem

    def values_of(self, record: ReviewItem) -> dict[str, Any]:
        versions = {f"{name}_version": memory.version for name, memory in _memories(record).items()}
        return {**super().values_of(record), **versions}

    def arguments(self) -> dict[str, Any]:
        memories = _memories(self.record).items()
        expected = {memory.pk: self.cleaned_data[f"{name}_version"] for name, memory in memories}
        return {"item_id": self.record.pk, "expected": ExpectedVersions(self.cleaned_data["version"], expected)}


def _memories(item: ReviewItem) -> dict[str, Fact | Episode]:
    memories = {"fact": item.fact, "known": item.known, "episode": item.episode}
    return {name: memory for name, memory in memories.items() if memory}


def _words_of(fact: Fact | None) -> dict[str, Any]:
    return {"content": fact.content, "category": fact.category} if fact else {}


class ApproveItemForm(ItemForm):
    calls, done = staticmethod(approve_item), gettext_lazy("Approved.")


class EditItemForm(EpisodeWords, ItemForm):
    """Approves the proposal in the operator's own words: a fact, a section of the profile, or a poor episode."""

    content = TextField(label=gettext_lazy("Text"), max_length=LONGEST_TEXT, rows=3)
    category = forms.ChoiceField(
        label=gettext_lazy("Category"), choices=Category.choices, widget=UnfoldAdminSelectWidget
    )
    section = TextField(label=gettext_lazy("Text of the section"), rows=6)
    FACT = ("content", "category")

    def __init__(self, data: Any = None, *, record: ReviewItem) -> None:
        super().__init__(data, record=record)
        fitting = self.WORDS if record.episode else ("section",) if record.proposed_section else self.FACT
        for name in {*self.WORDS, *self.FACT, "section"} - {*fitting}:
            del self.fields[name]

    def values_of(self, record: ReviewItem) -> dict[str, Any]:
        values = super().values_of(record)
        if record.episode:
            return {**values, **self.words_of(record.episode)}
        if record.proposed_section:
            return {**values, "section": record.proposed_section.after}
        return {**values, **_words_of(record.fact)}

    def changes(self) -> dict[str, Any]:
        """What the operator wrote, by the names of the memory's fields."""
        if "section" in self.cleaned_data:
            return {"summary": self.cleaned_data["section"]}
        return self.words() if self.record.episode else {name: self.cleaned_data[name] for name in self.FACT}

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        changes = self.changes()
        item = approve_edited(**self.arguments(), changes=changes, actor=actor, now=now)
        done = _("Approved. Your text is served and counts as confirmed by an operator.")
        if item.episode:
            return f"{done}{self.cut_out(item.episode)}"
        cut = item.fact is not None and item.fact.content != changes["content"].strip()
        return f"{done}{CUT_OUT if cut else ''}"


class KeepBothForm(ItemForm):
    calls, done = staticmethod(keep_both), gettext_lazy("Both are kept.")


class RejectItemForm(ItemForm):
    calls, done = staticmethod(reject_item), gettext_lazy("Rejected.")
    reason = ReasonField(*reasons.REJECT, help_text=FOR_COLLEAGUES)

    def arguments(self) -> dict[str, Any]:
        return {**super().arguments(), "reason": self.cleaned_data["reason"]}


class MergeForm(ItemForm):
    survivor = forms.ChoiceField(label=gettext_lazy("Fact to keep"), widget=UnfoldAdminRadioSelectWidget)
    content = TextField(label=gettext_lazy("Text"), max_length=LONGEST_TEXT, rows=3)
    category = forms.ChoiceField(
        label=gettext_lazy("Category"), choices=Category.choices, widget=UnfoldAdminSelectWidget
    )
    reason = ReasonField(*reasons.MERGE, help_text=FOR_COLLEAGUES)

    def __init__(self, data: Any = None, *, record: ReviewItem) -> None:
        super().__init__(data, record=record)
        pair = (("new", record.fact), ("known", record.known))
        self.facts: dict[str, Fact] = {name: fact for name, fact in pair if fact}
        labels = {"new": _("The proposed fact"), "known": _("The existing fact")}
        self.fields["survivor"].choices = [(name, labels[name]) for name in self.facts]  # type: ignore[attr-defined]
        self.fields["survivor"].initial = "new"

    def values_of(self, record: ReviewItem) -> dict[str, Any]:
        return {**super().values_of(record), **_words_of(record.fact)}

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        data = {name: self.cleaned_data[name] for name in ("content", "category", "reason")}
        survivor = self.facts[self.cleaned_data["survivor"]].pk
        item = merge_items(**self.arguments(), **data, survivor=survivor, actor=actor, now=now)
        kept = item.fact if item.fact_id == survivor else item.known
        cut = kept is not None and kept.content != data["content"].strip()
        done = _("Merged. The remaining fact counts as confirmed by an operator.")
        return f"{done}{CUT_OUT if cut else ''}"


class UndoForm(VersionForm):
    calls, done = staticmethod(undo_decision), gettext_lazy("Undone; back in the queue.")

    def arguments(self) -> dict[str, Any]:
        return {"item_id": self.record.pk, "expected_version": self.cleaned_data["version"]}


class TakeForm(VerbForm):
    """The operator has the item from now on; `expected` is who had it when they looked."""

    calls, done = staticmethod(take_item), gettext_lazy("It is with you. Others can still decide it.")
    expected = forms.CharField(required=False, max_length=36, widget=forms.HiddenInput)
    record: ReviewItem

    def values_of(self, record: ReviewItem) -> dict[str, Any]:
        return {"expected": record.taken_by}

    def arguments(self) -> dict[str, Any]:
        return {"item_id": self.record.pk, "expected": self.cleaned_data["expected"]}


class GiveBackForm(VerbForm):
    calls, done = staticmethod(give_back_item), gettext_lazy("It is with nobody.")

    def arguments(self) -> dict[str, Any]:
        return {"item_id": self.record.pk}


class NoteForm(VerbForm):
    calls, done = staticmethod(add_note), gettext_lazy("The note is kept.")
    text = TextField(
        label=gettext_lazy("Note"),
        max_length=LONGEST_TEXT,
        rows=2,
        help_text=gettext_lazy("For colleagues. It is exported and erased with the end user."),
    )

    def arguments(self) -> dict[str, Any]:
        return {"item_id": self.record.pk, "text": self.cleaned_data["text"]}


class DeleteNoteForm(VerbForm):
    calls, done = staticmethod(delete_note), gettext_lazy("The note is deleted.")
    note = forms.UUIDField(widget=forms.HiddenInput)

    def arguments(self) -> dict[str, Any]:
        return {"item_id": self.record.pk, "note_id": self.cleaned_data["note"]}
