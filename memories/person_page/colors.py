"""The tenant's colour on the page: with what text on it and on what ground it can be read. Pure.

A colour is `#rrggbb`. Where it would be too pale, or too dark at night, it is mixed with black or white until its
contrast is that of WCAG 2.2 AA (4.5:1).
"""

import re

_COLOR = re.compile(r"#[0-9a-f]{6}")
ENOUGH = 4.5
WHITE, BLACK = (255, 255, 255), (0, 0, 0)
# The cards of person_page.css, by day and by night.
DAY, NIGHT = (255, 255, 255), (21, 29, 35)
_STEPS = 20
RGB = tuple[int, int, int]


def known(text: str) -> str:
    """The six digits of a colour, without `#`; empty if it is none."""
    folded = text.strip().lower()
    return folded[1:] if _COLOR.fullmatch(folded) else ""


def sheet(digits: str) -> str:
    """A style sheet that gives the page this colour. Errors: ValueError for what is none."""
    if not known(f"#{digits}"):
        raise ValueError(digits)
    rgb = (int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16))
    day, night = readable(rgb, on=DAY, mixed_with=BLACK), readable(rgb, on=NIGHT, mixed_with=WHITE)
    return f":root{{{_variables(day)}}}\n@media (prefers-color-scheme: dark){{:root{{{_variables(night)}}}}}\n"


def readable(rgb: RGB, *, on: RGB, mixed_with: RGB) -> RGB:
    """The colour, mixed until it can be read on this ground."""
    for step in range(_STEPS + 1):
        share = step / _STEPS
        red, green, blue = (round(a + (b - a) * share) for a, b in zip(rgb, mixed_with, strict=True))
        mixed = red, green, blue
        if contrast(mixed, on) >= ENOUGH:
            return mixed
    return mixed_with


def contrast(one: RGB, other: RGB) -> float:
    """1 to 21, as WCAG computes it."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _variables(accent: RGB) -> str:
    text = WHITE if contrast(accent, WHITE) >= contrast(accent, BLACK) else BLACK
    return f"--accent:{_written(accent)};--on-accent:{_written(text)}"


def _written(rgb: RGB) -> str:
    return "#" + "".join(f"{part:02x}" for part in rgb)


def _luminance(rgb: RGB) -> float:
    parts = [part / 255 for part in rgb]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
