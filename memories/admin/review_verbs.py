"""The decisions of the queue as its buttons: what each is called, its key, and what it does to the item shown."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _

from memories.admin.page import VerbForm
from memories.admin.review_wording import effects_of
from memories.curation import Choice, choices_of
from memories.models import ReviewItem

KEYS = {Choice.APPROVE: "a", Choice.EDIT: "e", Choice.KEEP_BOTH: "b", Choice.MERGE: "m", Choice.REJECT: "r"}
# These need words: their button opens a form.
OPENING = (Choice.EDIT, Choice.MERGE, Choice.REJECT)


@dataclass(frozen=True)
class Verb:
    name: Choice
    key: str
    label: str
    submit: str
    effect: str
    form: VerbForm
    url: str

    @property
    def opens(self) -> bool:
        return self.name in OPENING

    @property
    def primary(self) -> bool:
        return self.name == Choice.APPROVE

    @property
    def danger(self) -> bool:
        return self.name == Choice.REJECT


def verbs_of(item: ReviewItem, forms: Mapping[str, VerbForm], query: str) -> list[Verb]:
    """Those that fit the item and have a form; `query` is how the list is filtered and scrolled."""
    labels, submits, effects = _labels(), _submits(), effects_of(item)
    return [
        Verb(
            choice,
            KEYS[choice],
            labels[choice],
            submits.get(choice, ""),
            effects[choice],
            forms[choice],
            url_of_verb(item, choice) + query,
        )
        for choice in choices_of(item)
        if choice in forms
    ]


def url_of_verb(item: ReviewItem, verb: str) -> str:
    return reverse("admin:memories_reviewitem_decide", args=[item.pk, verb])


def _labels() -> dict[Choice, str]:
    return {
        Choice.APPROVE: _("Approve"),
        Choice.EDIT: _("Edit"),
        Choice.KEEP_BOTH: _("Keep both"),
        Choice.MERGE: _("Merge"),
        Choice.REJECT: _("Reject"),
    }


def _submits() -> dict[Choice, str]:
    return {
        Choice.EDIT: _("Approve with these words"),
        Choice.MERGE: _("Merge them"),
        Choice.REJECT: _("Reject it"),
    }
