"""What no log may hold of an address: the token of a one-time link. Loaded with the settings, before any model."""

import logging
import re

_LINK = re.compile(r"(/exports/)[^/\s?\"']+")


def masked(text: str) -> str:
    """An address, or a line with one, without the token."""
    return _LINK.sub(r"\1…", text)


class Masked(logging.Filter):
    """Masks what Django says of requests that failed; it quotes their paths."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(masked(one) if isinstance(one, str) else one for one in record.args)
        return True
