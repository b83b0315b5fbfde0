"""The budget of a context: lines take it in their order until the first that does not fit."""

from collections.abc import Iterable
from functools import reduce
from operator import sub

from memories.context.rendering import FILE_CUT, MemoryLine, render
from memories.llm import tokens
from memories.text.memory_block import ENGLISH, Frame


class Block:
    """A block that is being filled: the longest prefix of the lines offered whose rendered text fits.

    In no vocabulary a token continues after a line break that `-`, `<`, a letter, a digit or a file's bar follows. So
    frame, headings (in any language) and lines add up to the count of the rendered text. Several vocabularies, those
    of `conservative`, add up each by itself; the dearest of the sums decides. Lines beyond the budget are not counted.
    """

    def __init__(self, max_tokens: int, tokenizer: str, frame: Frame = ENGLISH) -> None:
        self.lines: list[MemoryLine] = []
        self.left_out: list[MemoryLine] = []
        # What says only what a line says, here or where this block stands.
        self.named: list[MemoryLine] = []
        self._frame = frame
        self._max_tokens = max_tokens - tokens.template(tokenizer)
        self._tokenizer = tokenizer
        self._spent = tokens.counts_once(frame.empty, tokenizer)
        # Of each line, with its line break.
        self._costs: list[tokens.Counts] = []
        # Each with those above it, and where they are all there.
        self._titles: set[tuple[str, ...]] = set()
        self._below: set[tuple[int, str, str]] = set()
        self._is_cut = False

    @property
    def room(self) -> int:
        """Tokens that are left; below 0 where not even the frame fits."""
        return self._max_tokens - max(self._spent)

    @property
    def costs(self) -> list[int]:
        """Tokens of each line, with its line break."""
        return list(map(max, self._costs))

    @property
    def is_full(self) -> bool:
        """Whether a line did not fit, or not whole."""
        return self._is_cut or bool(self.left_out)

    @property
    def token_count(self) -> int:
        """Tokens of the rendered text; 0 for none."""
        return max(self._spent) + tokens.template(self._tokenizer) if self.lines else 0

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
        most = self._max_tokens if most is None else min(self._max_tokens, most - tokens.template(self._tokenizer))
        for place, line in enumerate(self.lines):
            if line.whole is not None:
                text = line.whole()
                cost = self._cost(text)
                spent = tuple(map(sub, tokens.together(self._spent, cost), self._costs[place]))
                if max(spent) > most:
                    return
                self._spent = spent
                self._costs[place] = cost
                self.lines[place] = line._replace(text=text, whole=None)

    def _takes_part(self, line: MemoryLine) -> bool:
        """Take the first parts of the line that fit, with the mark; False unless the second one fits."""
        spent = self._with(self._cost(FILE_CUT), *self._missing(line).values())
        taken: list[str] = []
        # Each part begins with what continues no token.
        for part in line.parts:
            spent = tokens.together(spent, self._cost(part))
            if max(spent) > self._max_tokens:
                break
            taken.append(part)
        if len(taken) < 2:
            return False
        self._is_cut = self._takes(line._replace(text="\n".join([*taken, FILE_CUT]), parts=()))
        return self._is_cut

    def _takes(self, line: MemoryLine) -> bool:
        below, cost = line.below, self._cost(line.text)
        missing = {} if below in self._below else self._missing(line)
        spent = self._with(cost, *missing.values()) if missing else tokens.together(self._spent, cost)
        if max(spent) > self._max_tokens:
            return False
        self._spent = spent
        self._titles.update(missing)
        self._below.add(below)
        self.lines.append(line)
        self._costs.append(cost)
        return True

    def _missing(self, line: MemoryLine) -> dict[tuple[str, ...], tokens.Counts]:
        """What the headings above the line take that are not in the block yet, by themselves with those above them."""
        titles = line.titles(self._frame)
        paths = {titles[: place + 1]: title for place, title in enumerate(titles)}
        return {path: self._cost(title) for path, title in paths.items() if path not in self._titles}

    def _with(self, *costs: tokens.Counts) -> tokens.Counts:
        """What is spent, and these."""
        return reduce(tokens.together, costs, self._spent)

    def _cost(self, text: str) -> tokens.Counts:
        return tokens.counts_once(text + "\n", self._tokenizer)
