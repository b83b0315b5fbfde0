"""What an import says by codes, in words: outcomes, reasons, failures."""

from collections.abc import Iterable, Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# In the order of the report.
OUTCOMES: Mapping[str, Promise] = {
    "conversations": _("Conversations read"),
    "messages": _("Messages stored"),
    "facts": _("Facts stored"),
    "waiting": _("Pending review"),
    "sections": _("Sections of profiles written"),
    "files": _("Memory files stored"),
    "items": _("Store items stored"),
    "episodes": _("Episodes stored"),
    "diary": _("Diary entries stored"),
    "relations": _("Relations stored"),
    "in_groups": _("Facts of groups stored"),
    "duplicates": _("There already"),
    "left": _("Messages of a branch that was left since"),
    "secrets": _("Secrets cut out"),
    "messages_undone": _("Messages deleted again"),
    "facts_undone": _("Facts deleted again"),
    "sections_undone": _("Sections of profiles put back"),
    "files_undone": _("Memory files deleted again"),
    "items_undone": _("Store items deleted again"),
    "diary_undone": _("Diary entries deleted again"),
    "relations_undone": _("Relations deleted again"),
    "in_groups_undone": _("Facts of groups deleted again"),
    "waiting_undone": _("Proposals withdrawn"),
    "people_undone": _("End users deleted again"),
    "people_kept": _("End users made by it, and kept"),
    "kept": _("Changed since, and kept"),
}
# Of what a person has from an import, by the kind of its rows.
ROWS: Mapping[str, Promise] = {
    "turns": _("Messages"),
    "fact": _("Facts"),
    "section": _("Sections of profiles"),
    "file": _("Memory files"),
    "item": _("Store items"),
    "profile": _("Sections of profiles"),
    "episode": _("Episodes"),
    "diary": _("Diary entries"),
    "triple": _("Relations"),
    "said": _("Facts of groups"),
}
REASONS: Mapping[str, Promise] = {
    "other_branch": _("Replaced by an edited question or another answer"),
    "system": _("Instructions to the model"),
    "tool": _("Calls of tools and their results"),
    "thoughts": _("A model’s thoughts"),
    "not_shown": _("Hidden messages"),
    "media": _("Pictures and sound"),
    "assistants_words": _("Stated by a model"),
    "others_words": _("Stated by somebody else"),
    "do_not_remember": _("Not to be remembered"),
    "forgotten": _("Removed there"),
    "nul": _("Characters that no text can have"),
    "surrogate": _("Characters that no text can have"),
    "too_large": _("Too large"),
    "message_too_large": _("Too large"),
    "file_too_large": _("Too large"),
    "depth": _("Nested too deeply"),
    "max_values": _("Too many values"),
    "expired": _("Expired"),
    "no_longer_true": _("No longer true"),
    "deleted": _("Deleted there"),
    "nobody": _("Nobody says whose it is"),
    "blank": _("Something that must be there is missing"),
    "required": _("Something that must be there is missing"),
    "other_namespace": _("Of another namespace"),
    "no_text": _("Without a text"),
    "file": _("Files without a text"),
    "no_file": _("No file"),
    "no_memory": _("No memory"),
    "scratch": _("Scratch files"),
    "unreadable": _("Unreadable"),
    "other_file": _("Files of another kind"),
    "hidden": _("Hidden files"),
    "not_chosen": _("Of people who were left out"),
    "review_needed": _("Speaks to a model"),
    "restricted": _("The end user is restricted"),
    "erased": _("The end user was erased"),
    "capture_off": _("Turns are not stored"),
    "made_anew": _("Made again from the rest"),
    "of_the_other_hub": _("What happened in the other hub"),
    "only_a_hash": _("Refusals of which only a hash is left"),
    "other_name": _("Other ids of the end user"),
    "taken": _("Something else is in its place"),
    "dangling": _("What it belongs to is missing"),
    "groups": _("What is said in groups"),
    "conflict": _("The same is there already"),
}
FAILURES: Mapping[str, Promise] = {
    "unknown_source": _("The file is of no kind that the hub knows. Choose the source when you upload it again."),
    "unreadable": _("The file cannot be read: it is broken, or its archive holds too much."),
    "user_needed": _("Nobody says whose it is. Name the end user, then start."),
    "namespace_needed": _("The items are in several namespaces. Import the file with the command, or by the API."),
    "erased": _("Somebody was erased, and the file may have held their words. Upload it again."),
    "restricted": _("The end user is restricted."),
    "abandoned": _("Nobody started it for a day. Upload the file again."),
    "worker_lost": _("Its workers were lost. What is stored stays. Continue."),
    "database": _("The database could not be reached."),
    "disk": _("The disk of the worker was full, or could not be read. What is stored stays. Continue."),
}


def told(counts: Mapping[str, int], words: Mapping[str, Promise]) -> list[tuple[str, str, int]]:
    """Code, words and number of each, as the table has them; codes without words come last."""
    return [(code, str(words.get(code, code)), counts[code]) for code in _ordered(counts, words)]


def _ordered(counts: Mapping[str, int], words: Iterable[str]) -> list[str]:
    known = [code for code in words if counts.get(code)]
    return known + sorted(code for code, number in counts.items() if number and code not in known)
