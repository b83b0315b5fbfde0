"""What a dream changed, in a line: made by code from the edits, so that no model tells what it did not do. Pure."""

from collections import Counter
from collections.abc import Iterable

from memories.models import DreamEdit

_COUNTED = (DreamEdit.State.APPLIED, DreamEdit.State.WAITING)


def summary_of(edits: Iterable[DreamEdit]) -> str:
    """Like `USER.md +2 −1, MEMORY.md +1`: lines added and removed of each file, of edits that count or wait."""
    added, removed = Counter[str](), Counter[str]()
    for edit in edits:
        if edit.state in _COUNTED:
            old, new = edit.old_text.splitlines(), edit.new_text.splitlines()
            same = sum((Counter(old) & Counter(new)).values())
            added[edit.path] += len(new) - same
            removed[edit.path] += len(old) - same
    parts = []
    for path in added:
        counts = f"+{added[path]}" if added[path] else "", f"−{removed[path]}" if removed[path] else ""
        parts.append(" ".join(filter(None, (path.removeprefix("/"), *counts))))
    return ", ".join(parts)
