"""The memory files of a context: the first file, then what was changed last.

Keys' texts were judged when they were written, as facts are, and are not judged again; what an operator wrote stands.
"""

from datetime import datetime

from django.db.models import Case, Value, When
from django.db.models.functions import Left

from memories.context.rendering import Line, file_line
from memories.files import paths, seeds
from memories.files.reading import Shelf
from memories.models import Encoding, EndUser

# No budget has room for more, except for very short ones.
MOST_FILES = 50
# Of each file's text. Eight thousand tokens, the largest budget, are seldom more.
MOST_CHARACTERS = 40_000


def file_lines(person: EndUser, *, agent_id: str, now: datetime) -> list[Line]:
    """The texts that this agent keeps about the person, each as one line that may be cut.

    Without scratch files, which belong to a conversation, and without the first text of a file that nobody wrote:
    nothing is remembered in it.
    """
    shelf = Shelf(person.tenant, person, agent_id, now)
    rows = shelf.present.filter(encoding=Encoding.UTF_8).exclude(path__startswith=paths.SCRATCH)
    order = Case(When(path=seeds.SEEDED, then=Value(0)), default=Value(1))
    # The order first: the database would read every text to sort the rows.
    chosen = list(rows.order_by(order, "-updated_at", "path").values_list("pk", flat=True)[:MOST_FILES])
    read = shelf.present.filter(pk__in=chosen).annotate(start=Left("content", MOST_CHARACTERS + 1))
    found = {row[0]: row for row in read.values_list("pk", "path", "updated_at", "start")} if chosen else {}
    lines = []
    for place, pk in enumerate(chosen):
        if row := found.get(pk):
            _, path, changed_at, start = row
            text, is_cut = _whole_lines(start)
            if text.strip():
                lines.append(
                    file_line(row_id=pk, path=path, text=text, changed_at=changed_at, place=place, is_cut=is_cut)
                )
    return lines


def _whole_lines(start: str) -> tuple[str, bool]:
    """The lines that were read to their end, and whether there are more."""
    if len(start) <= MOST_CHARACTERS:
        return start, False
    return start[: start.rfind("\n", 0, MOST_CHARACTERS) + 1], True
