"""What an import says by codes, in words: outcomes, reasons, failures."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.models import ImportSource

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
    "too_many_secrets": _("Too many passwords and keys to be checked"),
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
    "other_form": _("Of another form than its source gives it"),
    "same_id": _("With the id of another"),
    "project": _("Projects, and what they hold"),
    "cut_off": _("Cut off: the file ends early"),
    "damaged": _("Damaged files of the archive"),
    "columns": _("With more cells than columns"),
    "other_encoding": _("Not in UTF-8: save the file as UTF-8"),
    "syntax": _("Not readable as JSON"),
    "other_file": _("Files of another kind"),
    "hidden": _("Hidden files"),
    "not_chosen": _("Of people who were left out"),
    "review_needed": _("Speaks to a model"),
    "restricted": _("The end user is restricted"),
    "erased": _("The end user was erased"),
    "capture_off": _("Turns are not stored"),
    "made_anew": _("Made again from the rest"),
    "of_the_other_hub": _("What happened in the other hub"),
    "attachments": _("Files that came with turns: post them again"),
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


FORMS: Mapping[str, Promise] = {
    "html": _("It is HTML. Ask the service for JSON."),
    "pdf": _("It is a PDF."),
    "packed": _("It is an archive of another kind than ZIP. Unpack it first."),
    "no_text": _("It holds no file that can hold a text."),
}
_CUT_OFF = _(
    "File %(file)s ends early, at byte %(at)s, within what begins at byte %(begins)s; %(whole)s before it are whole. "
    "Download it again."
)
_ARCHIVE_CUT_OFF = _("The archive ends early, at byte %(at)s, in file %(file)s. Download it again.")
# Of what a file is that cannot be read at all.
UNREADABLE: Mapping[str, Promise] = {
    "damaged": _("The archive is damaged. Download it again."),
    "too_much": _("The archive holds too much. Import some of its files at a time."),
    "encrypted": _("The archive has a password. Unpack it first."),
    "too_many": _("It holds too many documents. Import some of them at a time."),
    "views": _("The database has views, and is not read."),
    "other_form": _("It has another form than its source gives it."),
    "other_backend": _("The palace is kept in a service. Give the drawers as JSON."),
    "packed_otherwise": _("The archive is packed in another way than exports are. Unpack it first."),
}


def sentences(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """What is said of a file that is not taken, or not as a whole. All of it is of the hub's words and numbers."""
    return [sentence for one in findings for sentence in _sentences(one)]


def _sentences(finding: Mapping[str, Any]) -> Iterator[str]:
    code = finding["code"]
    numbers = {name: f"{value:,}" for name, value in finding.items() if isinstance(value, int)}
    if code == "unknown_source":
        yield from _of_unknown(finding, numbers)
    elif code == "cut_off":
        yield (_CUT_OFF if "begins" in finding else _ARCHIVE_CUT_OFF) % numbers
    elif "file" in finding:
        yield _("File %(file)s of the archive is damaged. Download it again.") % numbers
    elif code in UNREADABLE:
        yield str(UNREADABLE[code])


def _of_unknown(finding: Mapping[str, Any], numbers: Mapping[str, str]) -> Iterator[str]:
    if finding.get("expected"):
        yield _("Expected members %(names)s.") % {"names": ", ".join(finding["expected"])}
    if finding.get("looks_like"):
        source = dict(ImportSource.choices).get(finding["looks_like"], finding["looks_like"])
        yield _("It looks like %(source)s.") % {"source": source}
    elif finding.get("form"):
        yield str(FORMS[finding["form"]])
    elif finding.get("found"):
        yield _("Found members %(names)s.") % {"names": ", ".join(finding["found"])}
    if finding.get("ends_at"):
        yield _("The file ends early, at byte %(ends_at)s.") % numbers


def told(counts: Mapping[str, int], words: Mapping[str, Promise]) -> list[tuple[str, str, int]]:
    """Code, words and number of each, as the table has them; codes of the same words are one, and those without words
    come last."""
    by_words: dict[str, tuple[str, str, int]] = {}
    known = [code for code in words if counts.get(code)]
    for code in known + sorted(code for code, number in counts.items() if number and code not in known):
        said = str(words.get(code, code))
        first, _, number = by_words.get(said, (code, said, 0))
        by_words[said] = first, said, number + counts[code]
    return list(by_words.values())
