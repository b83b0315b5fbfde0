"""What of a model's answer is an edit of a file that a dream may change; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from memories.files.dream_files import EditableFiles
from memories.llm.prompts.dream_edits import ProposedEdit
from memories.models.memories.dreams import LONGEST_EDIT
from memories.models.memories.files import LONGEST_PATH
from memories.text.cleaning import clean
from memories.text.secrets.redaction import redact_text
from memories.text.secrets.scrubbing import scrubbed_text

# Characters: what a prompt shows of a file. A dream makes none longer.
LONGEST_FILE = 8_000
MOST_EDITS = 50
# Why an edit is refused before any file is looked at.
MALFORMED, FOREIGN_PATH, TOO_LONG, NO_CHANGE = "malformed", "foreign_path", "too_long", "no_change"


@dataclass(frozen=True)
class EditProposal:
    """One edit, without secrets and invisible letters; `code` says why it cannot be applied."""

    number: int
    path: str
    old: str
    new: str
    code: str = ""


def read(edits: Sequence[Any], files: EditableFiles) -> list[EditProposal]:
    """The first MOST_EDITS items of an answer, each judged alone."""
    return [_proposal(number, raw, files) for number, raw in enumerate(edits[:MOST_EDITS], start=1)]


def _proposal(number: int, raw: Any, files: EditableFiles) -> EditProposal:
    try:
        edit = ProposedEdit.model_validate(raw)
    except ValidationError:
        return EditProposal(number, "", "", "", MALFORMED)
    found = files.named(edit.path)
    path = found or redact_text(clean(edit.path))[0][:LONGEST_PATH]
    old, new = _text(edit.old_text), _text(edit.new_text)
    code = ""
    if found is None:
        code = FOREIGN_PATH
    elif max(len(old), len(new)) > LONGEST_EDIT:
        code = TOO_LONG
    elif old == new:
        code = NO_CHANGE
    return EditProposal(number, path, old[:LONGEST_EDIT], new[:LONGEST_EDIT], code)


def _text(text: str) -> str:
    # As files are stored.
    return scrubbed_text(text.replace("\r\n", "\n").replace("\0", ""))
