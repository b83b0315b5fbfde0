"""A review item in plain words: what it is about, why it waits, and the effect of each decision."""

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.curation.review.deciding import Choice
from memories.models import ReviewItem, Status

Kind, Reason, State = ReviewItem.Kind, ReviewItem.Reason, ReviewItem.State

WHY: dict[str, str | Promise] = {
    Reason.ASSISTANT_TRUST: gettext_lazy(
        "Only the assistant stated this. It is not served until an operator approves it."
    ),
    Reason.TOOL_TRUST: gettext_lazy("Only a tool stated this. It is not served until an operator approves it."),
    Reason.SUGGESTED: gettext_lazy(
        "Simple rules found this in the user's messages; no model read it. It is not served yet."
    ),
    Reason.NOT_AS_SAID: gettext_lazy(
        "It is made of the user's words, but the user may only have asked, supposed, denied or quoted it, or said it "
        "of somebody else. It is not served until an operator approves it."
    ),
    Reason.LESS_SURE: gettext_lazy(
        "It differs from an existing fact and is less certain. The existing fact is still served."
    ),
    Reason.OUTRANKED: gettext_lazy("It contradicts a more trusted source. The existing fact is still served."),
    Reason.OPERATORS_WORD: gettext_lazy(
        "It contradicts a fact that an operator corrected, pinned or locked. Jobs cannot change such facts."
    ),
    Reason.REFUSED_BEFORE: gettext_lazy("It was rejected or forgotten before, and has been stated again."),
    Reason.NEAR_REFUSED: gettext_lazy("It is similar to a fact that an operator rejected."),
    Reason.REMOVAL: gettext_lazy(
        "A model takes this as no longer true, but the user did not plainly say so, somebody less trusted did, or it "
        "is a constraint. It is still served."
    ),
    Reason.PROPOSED: gettext_lazy("An agent proposes other words for this. The existing fact is still served."),
    Reason.FORGET_ASKED: gettext_lazy("An agent asks to forget this. It is still served."),
    Reason.OTHER_PERSON: gettext_lazy(
        "Two end users were merged, and they differ here. The existing fact is still served."
    ),
    Reason.IMPORTED: gettext_lazy(
        "It was imported and contradicts an existing fact, which is still served. Imports never replace facts."
    ),
    Reason.NOT_JUDGED: gettext_lazy(
        "It is similar to an existing fact, and no model was available to tell whether they are the same. Both are "
        "served until you decide."
    ),
    Reason.INSTRUCTIONS: gettext_lazy(
        "It looks like an instruction to a model. It is not served until an operator approves it."
    ),
    Reason.CLAIMS_RIGHTS: gettext_lazy(
        "It gives the user money or rights by the user's own word. It is not served until an operator approves it."
    ),
    Reason.POSSIBLE_SECRET: gettext_lazy(
        "It may contain a password or a key. It is not served until an operator approves it."
    ),
    Reason.POOR_QUALITY: gettext_lazy(
        "It says too little about the conversation. It is not served until an operator approves it."
    ),
    Reason.HABIT: gettext_lazy(
        "A model sees a habit in several episodes. Nobody said it, and it is not served until an operator approves it."
    ),
    Reason.CHANGE_OF_MIND: gettext_lazy(
        "A model sees a change of mind over several episodes. Nobody said it, and it is not served until an operator "
        "approves it."
    ),
    Reason.RECURRING_PROBLEM: gettext_lazy(
        "A model sees a problem that comes again in several episodes. Nobody said it, and it is not served until an "
        "operator approves it."
    ),
}
PERSONS_WORD = gettext_lazy("It contradicts what the person stated on their own page. Jobs cannot change such facts.")
SECTION_WHY = gettext_lazy(
    "An operator wrote this section, and an extraction proposes another text. The present text is still served."
)
SECTION_UNSUPPORTED = gettext_lazy(
    "Part of this text comes from the assistant or a tool, not from the user. The rest was written."
)
SECTION_SLIPPED = gettext_lazy("The user may not have said a part of this text like this. The rest was written.")
SECTION_LOSES = gettext_lazy(
    "This text leaves out something that the user said nothing about. The section has the new sentences beside it."
)
KEPT_CLOSED = gettext_lazy(
    "Something else was said later, and stays. This is kept as what held until then, and not served."
)
KIND_COLOURS: dict[str, str] = {
    Kind.QUARANTINED: "warning",
    Kind.CONFLICT: "danger",
    Kind.DUPLICATE: "info",
    Kind.FLAGGED: "danger",
    Kind.HELD: "warning",
    Kind.EPISODE: "info",
    Kind.PATTERN: "info",
}
STATE_COLOURS: dict[str, str] = {
    State.OPEN: "warning",
    State.APPROVED: "success",
    State.REJECTED: "danger",
    State.KEPT_BOTH: "info",
    State.MERGED: "info",
    State.SETTLED: "",
}


def review_reason(item: ReviewItem) -> str:
    """Why a person has to decide it."""
    of_section = {
        Reason.OPERATORS_WORD: SECTION_WHY,
        Reason.ASSISTANT_TRUST: SECTION_UNSUPPORTED,
        Reason.TOOL_TRUST: SECTION_UNSUPPORTED,
        Reason.NOT_AS_SAID: SECTION_SLIPPED,
        Reason.REMOVAL: SECTION_LOSES,
    }
    text = of_section.get(Reason(item.reason)) if item.proposed_section_id else None
    if item.reason == Reason.OPERATORS_WORD and item.known and item.known.is_persons_word:
        text = PERSONS_WORD
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
        named = {"section": item.proposed_section.get_section_display(), "agent": item.proposed_section.agent_id}
        return (_("Profile of %(agent)s: %(section)s") if named["agent"] else _("Profile: %(section)s")) % named
    fact = item.fact or item.known
    return fact.get_category_display() if fact else _("Episode")


def share(item: ReviewItem) -> float | None:
    """The confidence of the fact or the quality of the episode, 0..1; None for a section."""
    fact = item.fact or item.known
    if fact:
        return fact.confidence
    return item.episode.quality if item.episode else None


def label_of(item: ReviewItem, choice: str, *, is_late: bool) -> str:
    """What a decision is called where the kind of the item has better words for it; else empty. `is_late`: an approval
    would close the suggestion."""
    words: dict[Choice, str]
    if item.fact and is_late:
        words = {Choice.APPROVE: _("Keep as history")}
    elif item.fact and item.known and item.known.status == Status.ACTIVE:
        words = {Choice.REJECT: _("Keep known")}
        if item.kind == Kind.DUPLICATE or item.known.can_be_superseded_by(item.fact):
            words[Choice.APPROVE] = _("Use new")
    elif item.reason == Reason.FORGET_ASKED:
        words = {Choice.APPROVE: _("Forget it"), Choice.REJECT: _("Keep it")}
    elif item.known and not item.fact:
        words = {Choice.APPROVE: _("No longer true"), Choice.REJECT: _("Still true")}
    else:
        words = {}
    return words.get(Choice(choice), "")


def effects_of(item: ReviewItem, *, is_late: bool) -> dict[str, str]:
    """What each decision would do, by its name, in a short line. `is_late`: an approval would close the suggestion."""
    if item.reason == Reason.FORGET_ASKED:
        forgotten = _("It goes to the trash and is not learned from a conversation again.")
        return {Choice.APPROVE: forgotten, Choice.REJECT: _("It is still served. Nothing changes.")}
    keep_both = _("Both are served and marked as contradicting each other.")
    if item.kind == Kind.DUPLICATE:
        keep_both = _("They are not the same. Both are still served.")
    return {
        Choice.APPROVE: str(KEPT_CLOSED) if is_late else _effect_of_approval(item),
        Choice.EDIT: _("It is served from now on, in your words. Jobs and applications cannot change it."),
        Choice.KEEP_BOTH: keep_both,
        Choice.MERGE: _("One of the two stays, with your text and the evidence of both. The other one is superseded."),
        Choice.REJECT: _effect_of_rejection(item),
    }


def _effect_of_approval(item: ReviewItem) -> str:
    if item.proposed_section_id:
        return _("The proposed text replaces the section.")
    if item.episode_id:
        return _("It is served from now on, unchanged.")
    if item.fact is None:
        return _("It is archived and no longer served.")
    if item.known is None or item.known.status != Status.ACTIVE:
        return _("It is served from now on.")
    if item.kind == Kind.DUPLICATE:
        return _("The new fact stays and supersedes the existing one.")
    if not item.known.can_be_superseded_by(item.fact):
        text = _(
            "Its agent is served it from now on. The existing fact is the end user's own and stays for other agents."
        )
    elif item.known.protected:
        persons = _("It is served from now on. It supersedes the existing fact, although the person stated that one.")
        text = _("It is served from now on. It supersedes the existing fact, although an operator confirmed that one.")
        text = persons if item.known.is_persons_word else text
    else:
        text = _("It is served from now on and supersedes the existing fact.")
    return text


def _effect_of_rejection(item: ReviewItem) -> str:
    if item.proposed_section_id:
        return _("The section stays as it is.")
    if item.episode_id:
        return _(
            "It goes to the trash, and no other episode is made of the same turns. It can be restored "
            "until it is purged."
        )
    if item.fact is None:
        return _("It is still true. Nothing changes.")
    if item.kind == Kind.DUPLICATE:
        return _("It is already known. The new fact is archived, and the existing one stays.")
    return _("It is never served and not suggested again.")
