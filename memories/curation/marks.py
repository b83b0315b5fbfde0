"""Marks of what somebody saw of a record without a version: a form that was open meanwhile overwrites nothing."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Model


def mark(said: Mapping[str, Any]) -> str:
    """The same as long as all of it says the same; 32 hexadecimal digits."""
    told = json.dumps(said, default=str, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def mark_of(record: Model, names: Iterable[str]) -> str:
    """The mark of these fields."""
    return mark({name: getattr(record, name) for name in names})
