"""Whether a look at hostile text takes linear time, in seconds of the thread's own."""

import time
from collections.abc import Callable
from typing import Any


def takes_linear_time(look: Callable[[str], Any], unit: str, size: int) -> bool:
    """Eight times the text takes about eight times as long; a square would take 64. The best of three tries counts."""

    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        begun = time.thread_time()
        look(text)
        return time.thread_time() - begun

    # Of what is over in no time at all the ratio is noise.
    return any(seconds(8 * size) <= 20 * max(seconds(size), 0.002) for _ in range(3))
