"""The forms of an episode's verbs: each carries the version that the operator was looking at."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminDecimalFieldWidget

from memories import curation
from memories.admin.fields import LinesField, TextField
from memories.admin.naming import called
from memories.admin.page import VerbForm
from memories.admin.wording import CUT_OUT
from memories.audit import Actor
from memories.models import Episode
from memories.models.episodes import LONGEST_SUMMARY


class EpisodeWords(VerbForm):
    """What an operator may write of an episode."""

    summary = TextField(label=gettext_lazy("Summary"), max_length=LONGEST_SUMMARY, rows=3)
    key_topics = LinesField(label=gettext_lazy("Topics"), longest=LONGEST_SUMMARY)
    actions_taken = LinesField(label=gettext_lazy("Actions"), longest=LONGEST_SUMMARY)
    outcomes = LinesField(label=gettext_lazy("Outcomes"), longest=LONGEST_SUMMARY)
    importance = forms.FloatField(
        label=gettext_lazy("Importance"),
        min_value=0,
        max_value=1,
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": 0.05}),
    )
    WORDS = ("summary", "key_topics", "actions_taken", "outcomes", "importance")

    def begin_with(self, episode: Episode | None) -> None:
        """Show the episode as it is."""
        for name in self.WORDS if episode else ():
            self.fields[name].initial = getattr(episode, name)

    def said(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in self.WORDS}

    def told(self, episode: Episode | None) -> str:
        """What was cut out of it, if something was."""
        cut = episode is not None and any(getattr(episode, name) != value for name, value in self.said().items())
        return str(CUT_OUT) if cut else ""


class EpisodeForm(VerbForm):
    version = forms.IntegerField(widget=forms.HiddenInput)
    record: Episode

    def __init__(self, data: Any = None, *, record: Episode) -> None:
        super().__init__(data, record=record)
        self.fields["version"].initial = record.version

    def see(self, record: Episode) -> None:
        super().see(record)
        # Without this the next attempt would name the old version again and never be taken.
        self.data = {**self.data.dict(), "version": record.version}  # type: ignore[attr-defined]

    def target(self) -> dict[str, Any]:
        """What every verb is told: which episode, and the version it is about."""
        return {"episode_id": self.record.pk, "expected_version": self.cleaned_data["version"]}


class EditForm(EpisodeWords, EpisodeForm):
    def __init__(self, data: Any = None, *, record: Episode) -> None:
        super().__init__(data, record=record)
        self.begin_with(record)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        episode = curation.edit_episode(**self.target(), tenant=None, changes=self.said(), actor=actor, now=now)
        done = _("%(episode)s is edited: it does not fade, and no key changes it from now on.") % {
            "episode": called(episode)
        }
        return f"{done}{self.told(episode)}"


class PinForm(EpisodeForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        episode = curation.pin_episode(**self.target(), actor=actor, now=now)
        return _("%(episode)s is pinned: it does not fade, and no key changes it from now on.") % {
            "episode": called(episode)
        }


class UnpinForm(EpisodeForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        episode = curation.unpin_episode(**self.target(), actor=actor, now=now)
        return _("%(episode)s fades again, and keys may change it.") % {"episode": called(episode)}


class ForgetForm(EpisodeForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        curation.forget_episode(**self.target(), tenant=None, actor=actor, now=now)
        return _("%(episode)s is in the trash. Restore it below if that was wrong.") % {"episode": called(self.record)}


class RestoreForm(EpisodeForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        episode = curation.restore_episode(**self.target(), actor=actor, now=now)
        return _("%(episode)s is restored: it is served again.") % {"episode": called(episode)}
