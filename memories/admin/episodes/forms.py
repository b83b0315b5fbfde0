"""The forms of an episode's verbs: each carries the version that the operator was looking at."""

from datetime import datetime
from functools import partial
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminDecimalFieldWidget

from memories.admin.site.fields import LinesField, TextField
from memories.admin.site.mentions import mention
from memories.admin.site.page import Button, VerbForm, VersionForm
from memories.admin.site.wording import CUT_OUT
from memories.audit import Actor
from memories.curation.episodes import edit_episode, forget_episode, pin_episode, restore_episode, unpin_episode
from memories.models import Episode, EpisodeStatus
from memories.models.memories.episodes import LISTS, LONGEST_SUMMARY, TEXTS


class EpisodeWords(VerbForm):
    """What an operator may write of an episode."""

    summary = TextField(label=_("Summary"), max_length=LONGEST_SUMMARY, rows=3)
    importance = forms.FloatField(
        label=_("Importance"),
        min_value=0,
        max_value=1,
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": 0.05}),
    )
    WORDS = (*TEXTS, "importance")

    def __init__(self, data: Any = None, *, record: Any) -> None:
        super().__init__(data, record=record)
        self.fields |= {name: LinesField(label=label, longest=LONGEST_SUMMARY) for name, label in LISTS.items()}
        self.order_fields(self.WORDS)

    def words_of(self, episode: Episode) -> dict[str, Any]:
        """The episode as it is."""
        return {name: getattr(episode, name) for name in self.WORDS}

    def words(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in self.WORDS}

    def cut_out(self, episode: Episode) -> str:
        """A note for the message if the hub cut something out of what was typed."""
        return str(CUT_OUT) if any(getattr(episode, name) != value for name, value in self.words().items()) else ""


class EpisodeForm(VersionForm):
    """A verb of `curation` that takes the episode and its version."""

    record: Episode

    def offered(self) -> Button | None:
        return self.button if self.record.status != EpisodeStatus.TRASHED else None

    def arguments(self) -> dict[str, Any]:
        return {"episode_id": self.record.pk, "expected_version": self.cleaned_data["version"]}


class EditForm(EpisodeWords, EpisodeForm):
    button = Button(
        "edit",
        "edit",
        _("Edit"),
        _("Save this episode"),
        _("Your text counts as confirmed by an operator: it does not fade, and applications cannot change it."),
    )

    def values_of(self, record: Episode) -> dict[str, Any]:
        return {**super().values_of(record), **self.words_of(record)}

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        episode = edit_episode(**self.arguments(), tenant=None, changes=self.words(), actor=actor, now=now)
        done = gettext("%(episode)s is saved. It does not fade, and applications can no longer change it.")
        return f"{done % {'episode': mention(episode)}}{self.cut_out(episode)}"


class UnpinEpisodeForm(EpisodeForm):
    button = Button(
        "unpin",
        "keep_off",
        _("Let it fade"),
        _("Let this episode fade"),
        _("It can fade again, and applications can change it."),
    )
    calls, done = staticmethod(unpin_episode), _("%(episode)s can fade again, and applications can change it.")

    def offered(self) -> Button | None:
        return super().offered() if self.record.pinned or self.record.binding else None


class PinEpisodeForm(EpisodeForm):
    button = Button(
        "pin",
        "keep",
        _("Pin"),
        _("Pin this episode"),
        _("It does not fade, and applications cannot change it."),
    )
    calls = staticmethod(pin_episode)
    done = _("%(episode)s is pinned. It does not fade, and applications can no longer change it.")

    def offered(self) -> Button | None:
        return None if self.record.pinned else super().offered()


class ForgetEpisodeForm(EpisodeForm):
    button = Button(
        "forget",
        "delete",
        _("Forget"),
        _("Forget this episode"),
        _(
            "It goes to the trash and out of every context at once. You can restore it. No other episode is made of "
            "the same turns."
        ),
        danger=True,
    )
    calls = partial(forget_episode, tenant=None)
    done = _("%(episode)s is in the trash. You can restore it below.")


class RestoreEpisodeForm(EpisodeForm):
    button = Button(
        "restore",
        "restore_from_trash",
        _("Restore"),
        _("Restore this episode"),
        _("It is served again and fades from now on."),
    )
    calls, done = staticmethod(restore_episode), _("%(episode)s is restored and served again.")

    def offered(self) -> Button | None:
        return self.button if self.record.status == EpisodeStatus.TRASHED else None
