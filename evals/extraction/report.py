"""What is told of a measurement: a table, the gate's refusals, and what it took."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evals.extraction.measure import Measured
from evals.extraction.scores import Score, by_group, figures, table
from memories.llm.prompts import memory_update


@dataclass
class Report:
    """Of one model; `prices` of a million tokens read and written, or none."""

    model: str
    rows: list[Measured]
    prices: Sequence[float] | None = None
    prompt: str = memory_update.VERSION

    @property
    def groups(self) -> dict[str, Score]:
        return by_group((row.dialogue, row.judged.score) for row in self.rows)

    @property
    def refusals(self) -> Counter[str]:
        return sum((row.refusals for row in self.rows), Counter())

    @property
    def triples(self) -> int:
        return sum(row.triples for row in self.rows)

    @property
    def failures(self) -> Counter[str]:
        return Counter(row.failure for row in self.rows if row.failure)

    @property
    def cost(self) -> float | None:
        read, written = self._tokens
        return (read * self.prices[0] + written * self.prices[1]) / 1_000_000 if self.prices else None

    @property
    def _tokens(self) -> tuple[int, int]:
        return sum(row.prompt_tokens for row in self.rows), sum(row.completion_tokens for row in self.rows)

    def text(self, *, show: bool) -> str:
        """For people; with `show` what is wrong and missing in each dialogue comes first."""
        seconds = sorted(row.seconds for row in self.rows) or [0.0]
        read, written = self._tokens
        lines = [
            *(self._faults() if show else ()),
            f"{self.model}, {self.prompt}",
            table(self.groups),
            f"refused by the gate: {_counted(self.refusals)}",
            f"no answer: {_counted(self.failures)}",
            *([f"triples of served facts: {self.triples}"] if self.prompt != memory_update.VERSION else []),
            f"tokens: {read} read, {written} written in {sum(row.calls for row in self.rows)} calls"
            + (f"; cost {self.cost:.4f}" if self.cost is not None else ""),
            f"seconds for each: {seconds[len(seconds) // 2]:.1f} (median), {seconds[-1]:.1f} (longest)",
        ]
        return "\n".join(lines) + "\n"

    def json(self) -> str:
        """All figures, and the faults of each dialogue."""
        read, written = self._tokens
        document = {
            "model": self.model,
            "prompt": self.prompt,
            "figures": {name: figures(score) for name, score in self.groups.items()},
            "refusals": self.refusals,
            "failures": self.failures,
            "triples": self.triples,
            "tokens": {"read": read, "written": written},
            "cost": self.cost,
            "dialogues": {
                row.dialogue.id: {"wrong": row.judged.wrong, "missed": row.judged.missed, "failure": row.failure}
                for row in self.rows
            },
        }
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"

    def _faults(self) -> Iterator[str]:
        for row in self.rows:
            yield from (f"{row.dialogue.id}  wrong: {text}" for text in row.judged.wrong)
            yield from (f"{row.dialogue.id}  missing: {text}" for text in row.judged.missed)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"
