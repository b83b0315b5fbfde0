"""The budget of a context: lines take it in their order until the first that does not fit."""

from collections.abc import Iterable
from dataclasses import replace

from memories.context.rendering import FILE_CUT, MemoryLine, render
from memories.llm import tokens
from memories.text.memory_block import ENGLISH, Frame


class Block:
    """A block that is being filled: the longest prefix of the lines offered whose rendered text fits.

    In both encodings no token continues after a line break that `-`, `<`, a letter or a digit follows. So frame,
    headings (in any language) and lines add up to the count of the rendered text. Lines beyond the budget are not
    counted.
    """

    def __init__(self, max_tokens: int, tokenizer: str, frame: Frame = ENGLISH) -> None:
        self.lines: list[MemoryLine] = []
        # Tokens of each line, with its line break.
        self.costs: list[int] = []
        self.left_out: list[MemoryLine] = []
        self.room = max_tokens - tokens.count_once(frame.empty, tokenizer)
        self._frame = frame
        self._max_tokens = max_tokens
        self._tokenizer = tokenizer
        # Each with those above it.
        self._titles: set[tuple[str, ...]] = set()
        self._is_cut = False

    @property
    def is_full(self) -> bool:
        """Whether a line did not fit, or not whole."""
        return self._is_cut or bool(self.left_out)

    @property
    def token_count(self) -> int:
        """Tokens of the rendered text; 0 for none."""
        return self._max_tokens - self.room if self.lines else 0

    @property
    def memory(self) -> str:
        """The rendered text."""
        return render(self.lines, self._frame)

    def offer(self, lines: Iterable[MemoryLine]) -> None:
        """Take the lines, up to the first that does not fit. Of that one take what fits, if it may be cut."""
        for line in lines:
            if self.is_full or not (self._takes(line) or self._takes_part(line)):
                self.left_out.append(line)

    def lengthen(self, most: int | None = None) -> None:
        """Tell passages as a whole, the first lines first, while there is room; up to `most` tokens of the block."""
        spare = self.room if most is None else min(self.room, most - self.token_count)
        for place, line in enumerate(self.lines):
            if line.whole is not None:
                text = line.whole()
                cost = self._cost(text)
                if cost - self.costs[place] > spare:
                    return
                spare -= cost - self.costs[place]
                self.room -= cost - self.costs[place]
                self.costs[place] = cost
                self.lines[place] = replace(line, text=text, whole=None)

    def _takes_part(self, line: MemoryLine) -> bool:
        """Take the first parts of the line that fit, with the mark; False unless the second one fits."""
        room = self.room - self._cost(FILE_CUT) - sum(map(self._cost, self._missing(line).values()))
        taken: list[str] = []
        # Each part begins with what continues no token.
        for part in line.parts:
            room -= self._cost(part)
            if room < 0:
                break
            taken.append(part)
        if len(taken) < 2:
            return False
        self._is_cut = self._takes(replace(line, text="\n".join([*taken, FILE_CUT]), parts=()))
        return self._is_cut

    def _cost(self, text: str) -> int:
        return tokens.count_once(text + "\n", self._tokenizer)

    def _missing(self, line: MemoryLine) -> dict[tuple[str, ...], str]:
        """The headings above the line that are not in the block yet, by themselves with those above them."""
        titles = line.titles(self._frame)
        paths = {titles[: place + 1]: title for place, title in enumerate(titles)}
        return {path: title for path, title in paths.items() if path not in self._titles}

    def _takes(self, line: MemoryLine) -> bool:
        missing = self._missing(line)
        cost = self._cost(line.text)
        added = cost + sum(map(self._cost, missing.values()))
        if added > self.room:
            return False
        self.room -= added
        self._titles.update(missing)
        self.lines.append(line)
        self.costs.append(cost)
        return True
