"""What forbids a dream, or a decision about one."""

from memories.exceptions import Conflict


class NothingToDream(Conflict):
    """There are no new episodes of this person with this agent. Episodes are made when a conversation ends."""

    code = "nothing_new"


class NothingToReflect(NothingToDream):
    """There is nothing to reflect on: it takes two episodes of this person with this agent, one of them since the last
    reflection, and fewer than five proposals about the person within a week."""


class DreamOpen(Conflict):
    """A dream about this person and agent is running or waits for approval. Wait for it, or decide it."""

    code = "dream_open"


class NoModelToDream(Conflict):
    """A dream needs a language model, and none is configured."""

    code = "no_model"


class DreamDecided(Conflict):
    """Somebody has decided about this dream meanwhile, or its turn is over. Look at it again."""

    code = "dream_decided"


class EditNotUndone(Conflict):
    """The file has changed at this place since, or a later edit of this dream rests on it. Undo that one first, or edit
    the file."""

    code = "edit_not_undone"


class NothingToRestore(Conflict):
    """None of the files can become what it was: all were changed by others since, locked, or have lost the version."""

    code = "nothing_to_restore"


class Outdated(Exception):
    """What a dream read has changed while the model was asked."""
