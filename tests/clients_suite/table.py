"""The verdicts as lines, and as the table of docs/gateway.md."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.clients_suite.judge import Verdict

HEAD = (
    "| client | version | protocol | as it is | with `X-Memory-Said` | remarks |\n| --- | --- | --- | --- | --- | --- |"
)
BEGIN, END = "<!-- clients: begin -->", "<!-- clients: end -->"


def line(found: Verdict) -> str:
    """What stands on the screen for one run."""
    counts = f"{found.typed} typed, {found.said} stored, {found.sessions} of {found.expected_sessions} sessions"
    wrong = {name: getattr(found, name) for name in ("broke", "lost", "foreign", "facts", "recalled")}
    faults = "".join(f"\n    {name}: {_short(what)}" for name, what in wrong.items() if what)
    return f"{'holds' if found.holds else 'FAILS'}  {found.client} ({found.mode}): {counts}{faults}"


def table(clients: Sequence[tuple[str, Mapping[str, Any]]], verdicts: Sequence[Verdict]) -> str:
    by_mode = {(one.client, one.mode): one for one in verdicts}
    rows = [
        f"| {says['title']} | {says['version']} | {says['protocol']} | {_word(by_mode.get((name, 'plain')))} "
        f"| {_word(by_mode.get((name, 'said')))} | {says.get('remarks', '')} |"
        for name, says in clients
    ]
    return "\n".join([HEAD, *rows])


def all_work(verdicts: Sequence[Verdict]) -> bool:
    """Whether each client works in one of its ways."""
    worked = {one.client for one in verdicts if one.holds}
    return all(one.client in worked for one in verdicts)


def write(page: Path, made: str, begin: str = BEGIN, end: str = END) -> None:
    """Between the two marks of the page."""
    text = page.read_text("utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    page.write_text(pattern.sub(lambda _: f"{begin}\n{made}\n{end}", text), encoding="utf-8")


def _word(found: Verdict | None) -> str:
    if found is None:
        return "–"
    if found.holds:
        return "works"
    faults = [
        ("does not run", bool(found.broke)),
        (f"{len(found.lost)} of {found.typed} texts lost", bool(found.lost)),
        (f"{len(found.foreign)} foreign texts", bool(found.foreign)),
        (f"{found.sessions} sessions for {found.expected_sessions}", found.sessions != found.expected_sessions),
        (f"{len(found.facts)} foreign facts", bool(found.facts)),
        ("foreign text recalled", bool(found.recalled)),
    ]
    return ", ".join(word for word, is_so in faults if is_so)


def _short(what: Any) -> str:
    return what if isinstance(what, str) else "; ".join(f"{one[:70]!r}" for one in what[:6])
