"""What a review item says in plain words: what it is, why it waits, and what each decision does to it; pure."""

from memories.curation import Choice
from memories.models import ReviewItem, Status

Kind, Reason, State = ReviewItem.Kind, ReviewItem.Reason, ReviewItem.State

WHY: dict[str, str] = {
    Reason.ASSISTANT_TRUST: "Only the assistant said this, so it is not served until somebody approves it.",
    Reason.TOOL_TRUST: "Only a tool said this, so it is not served until somebody approves it.",
    Reason.SUGGESTED: "No model read this: simple rules picked it out of what the person wrote. It is not served yet.",
    Reason.LESS_SURE: "It says something else than what is known, and was said with less certainty. What is known "
    "is still served.",
    Reason.OUTRANKED: "It contradicts what somebody of more trust said. What is known is still served.",
    Reason.OPERATORS_WORD: "It contradicts what an operator set right, pinned or locked. No job may change that.",
    Reason.REFUSED_BEFORE: "An operator refused this before, and the person has said it again.",
    Reason.NEAR_REFUSED: "It is close to what an operator refused.",
    Reason.REMOVAL: "A source of less trust says that this is true no longer. It is still served.",
    Reason.OTHER_PERSON: "Two people were merged, and this is where they differ. What stands is still served.",
    Reason.NOT_JUDGED: "It is close to what is known, and no model was there to tell whether it is the same. Both are "
    "served meanwhile.",
    Reason.INSTRUCTIONS: "It reads like an instruction to a model. It is not served until somebody approves it.",
    Reason.POSSIBLE_SECRET: "It may hold a password or a key. It is not served until somebody approves it.",
    Reason.POOR_QUALITY: "It says too little of its conversation. It is not served until somebody approves it.",
}
SECTION_WHY = "An operator wrote this section, and an extraction proposes another text. What stands is still served."
KIND_COLOURS: dict[str, str] = {
    Kind.QUARANTINED: "warning",
    Kind.CONFLICT: "danger",
    Kind.DUPLICATE: "info",
    Kind.FLAGGED: "danger",
    Kind.HELD: "warning",
    Kind.EPISODE: "info",
}
STATE_COLOURS: dict[str, str] = {
    "waiting": "warning",
    "approved": "success",
    "rejected": "danger",
    "kept both": "info",
    "merged": "info",
    "settled": "",
}


def why(item: ReviewItem) -> str:
    """Why a person has to decide it."""
    of_section = item.proposed_section_id and item.reason == Reason.OPERATORS_WORD
    return SECTION_WHY if of_section else WHY[item.reason]


def state_of(item: ReviewItem) -> str:
    return "waiting" if item.state == State.OPEN else item.get_state_display().lower()


def effects_of(item: ReviewItem) -> dict[str, str]:
    """What each decision would do, by its name, in a short line."""
    return {
        Choice.APPROVE: _approving(item),
        Choice.EDIT: "It is served from now on, in your words: no job and no key changes it afterwards.",
        Choice.KEEP_BOTH: _keeping(item),
        Choice.MERGE: "One of the two stays, with a text of yours and the evidence of both. The other is superseded.",
        Choice.REJECT: _rejecting(item),
    }


def _approving(item: ReviewItem) -> str:
    if item.proposed_section_id:
        return "The proposed text takes the place of the section."
    if item.episode_id:
        return "It is served from now on, as it stands."
    if item.fact is None:
        return "It is archived, and served no longer."
    if item.known is None or item.known.status != Status.ACTIVE:
        return "It is served from now on."
    if item.kind == Kind.DUPLICATE:
        return "The new one stays. The known one is superseded by it."
    word = ", though it is an operator's word" if item.known.protected else ""
    return f"It is served from now on. What is known is superseded by it{word}."


def _keeping(item: ReviewItem) -> str:
    if item.kind == Kind.DUPLICATE:
        return "They are not the same: both go on being served."
    return "Both are served, and it is noted that they contradict each other."


def _rejecting(item: ReviewItem) -> str:
    if item.proposed_section_id:
        return "The section stays as it is."
    if item.episode_id:
        return "It goes to the trash, and no other is made of the same turns. Until it is purged it can be restored."
    if item.fact is None:
        return "It is still true: nothing changes."
    if item.kind == Kind.DUPLICATE:
        return "The same is known already: the new one is archived, and what is known stays."
    return "It is never served, and is not suggested again."
