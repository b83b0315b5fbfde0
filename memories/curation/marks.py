"""Marks of records without a version, by which a form notices that somebody changed the record meanwhile."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Model


def mark(values: Mapping[str, Any]) -> str:
    """A hash of the values; 32 hexadecimal digits."""
    text = json.dumps(values, default=str, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def mark_of(record: Model, names: Iterable[str]) -> str:
    """The mark of these fields."""
    return mark({name: getattr(record, name) for name in names})
