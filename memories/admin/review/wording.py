"""A review item in plain words: what it is about, why it waits, and the effect of each decision."""

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.curation.review.deciding import Choice
from memories.models import ReviewItem, Status

Kind, Reason, State = ReviewItem.Kind, ReviewItem.Reason, ReviewItem.State

WHY: dict[str, str | Promise] = {
    Reason.ASSISTANT_TRUST: gettext_lazy(
        "Only the assistant said this, so it is not served until somebody approves it."
    ),
    Reason.TOOL_TRUST: gettext_lazy("Only a tool said this, so it is not served until somebody approves it."),
    Reason.SUGGESTED: gettext_lazy(
        "No model read this: simple rules picked it out of what the person wrote. It is not served yet."
    ),
    Reason.LESS_SURE: gettext_lazy(
        "It says something else than what is known, and was said with less certainty. What is known is still served."
    ),
    Reason.OUTRANKED: gettext_lazy("It contradicts what somebody of more trust said. What is known is still served."),
    Reason.OPERATORS_WORD: gettext_lazy(
        "It contradicts what an operator set right, pinned or locked. No job may change that."
    ),
    Reason.REFUSED_BEFORE: gettext_lazy("An operator refused this before, and the person has said it again."),
    Reason.NEAR_REFUSED: gettext_lazy("It is close to what an operator refused."),
    Reason.REMOVAL: gettext_lazy("A source of less trust says that this is true no longer. It is still served."),
    Reason.OTHER_PERSON: gettext_lazy(
        "Two people were merged, and this is where they differ. What stands is still served."
    ),
    Reason.IMPORTED: gettext_lazy(
        "It was imported and says something else than what is known, which is still served: an import replaces nothing."
    ),
    Reason.NOT_JUDGED: gettext_lazy(
        "It is close to what is known, and no model was there to tell whether it is the same. Both are served "
        "meanwhile."
    ),
    Reason.INSTRUCTIONS: gettext_lazy(
        "It reads like an instruction to a model. It is not served until somebody approves it."
    ),
    Reason.POSSIBLE_SECRET: gettext_lazy(
        "It may hold a password or a key. It is not served until somebody approves it."
    ),
    Reason.POOR_QUALITY: gettext_lazy(
        "It says too little of its conversation. It is not served until somebody approves it."
    ),
}
SECTION_WHY = gettext_lazy(
    "An operator wrote this section, and an extraction proposes another text. What stands is still served."
)
SECTION_UNSUPPORTED = gettext_lazy(
    "A part of this text is in words of the assistant or of a tool, not of the person. The rest of it is written."
)
KIND_COLOURS: dict[str, str] = {
    Kind.QUARANTINED: "warning",
    Kind.CONFLICT: "danger",
    Kind.DUPLICATE: "info",
    Kind.FLAGGED: "danger",
    Kind.HELD: "warning",
    Kind.EPISODE: "info",
}
STATE_COLOURS: dict[str, str] = {
    State.OPEN: "warning",
    State.APPROVED: "success",
    State.REJECTED: "danger",
    State.KEPT_BOTH: "info",
    State.MERGED: "info",
    State.SETTLED: "",
}


def why(item: ReviewItem) -> str:
    """Why a person has to decide it."""
    of_section = {
        Reason.OPERATORS_WORD: SECTION_WHY,
        Reason.ASSISTANT_TRUST: SECTION_UNSUPPORTED,
        Reason.TOOL_TRUST: SECTION_UNSUPPORTED,
    }
    text = of_section.get(Reason(item.reason)) if item.proposed_section_id else None
    return str(text or WHY[item.reason])


def headline(item: ReviewItem) -> str:
    """The text of the memory that it is about."""
    fact = item.fact or item.known
    if fact:
        return fact.content
    if item.episode:
        return item.episode.summary
    return item.proposed_section.after if item.proposed_section else ""


def about(item: ReviewItem) -> str:
    """The category of the fact, the section of the profile, or an episode."""
    if item.proposed_section:
        return _("Profile: %(section)s") % {"section": item.proposed_section.get_section_display()}
    fact = item.fact or item.known
    return fact.get_category_display() if fact else _("Episode")


def share(item: ReviewItem) -> float | None:
    """The confidence of the fact or the quality of the episode, 0..1; None for a section."""
    fact = item.fact or item.known
    if fact:
        return fact.confidence
    return item.episode.quality if item.episode else None


def effects_of(item: ReviewItem) -> dict[str, str]:
    """What each decision would do, by its name, in a short line."""
    keep_both = _("Both are served, and it is noted that they contradict each other.")
    if item.kind == Kind.DUPLICATE:
        keep_both = _("They are not the same: both go on being served.")
    return {
        Choice.APPROVE: _effect_of_approval(item),
        Choice.EDIT: _("It is served from now on, in your words: no job and no key changes it afterwards."),
        Choice.KEEP_BOTH: keep_both,
        Choice.MERGE: _(
            "One of the two stays, with a text of yours and the evidence of both. The other is superseded."
        ),
        Choice.REJECT: _effect_of_rejection(item),
    }


def _effect_of_approval(item: ReviewItem) -> str:
    if item.proposed_section_id:
        return _("The proposed text takes the place of the section.")
    if item.episode_id:
        return _("It is served from now on, as it stands.")
    if item.fact is None:
        return _("It is archived, and served no longer.")
    if item.known is None or item.known.status != Status.ACTIVE:
        return _("It is served from now on.")
    if item.kind == Kind.DUPLICATE:
        return _("The new one stays. The known one is superseded by it.")
    if item.known.protected:
        text = _("It is served from now on. What is known is superseded by it, though it is an operator's word.")
    else:
        text = _("It is served from now on. What is known is superseded by it.")
    return text


def _effect_of_rejection(item: ReviewItem) -> str:
    if item.proposed_section_id:
        return _("The section stays as it is.")
    if item.episode_id:
        return _("It goes to the trash, and no other is made of the same turns. Until it is purged it can be restored.")
    if item.fact is None:
        return _("It is still true: nothing changes.")
    if item.kind == Kind.DUPLICATE:
        return _("The same is known already: the new one is archived, and what is known stays.")
    return _("It is never served, and is not suggested again.")
