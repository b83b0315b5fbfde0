"""Masks one-time tokens in log lines. The logging settings load this module before any model."""

import logging
import re

_LINK = re.compile(r"(/exports/)[^/\s?\"']+")


def masked(text: str) -> str:
    """The text without the token of a one-time link."""
    return _LINK.sub(r"\1…", text)


class Masked(logging.Filter):
    """Masks Django's lines about failed requests, which quote their paths."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(masked(one) if isinstance(one, str) else one for one in record.args)
        return True
