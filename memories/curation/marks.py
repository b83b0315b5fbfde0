"""Marks of what somebody saw of a record without a version: a form that was open meanwhile overwrites nothing."""

import hashlib
import json
from collections.abc import Iterable

from django.db.models import Model


def mark_of(record: Model, names: Iterable[str]) -> str:
    """The same as long as all these fields say the same; 32 hexadecimal digits."""
    said = {name: getattr(record, name) for name in names}
    told = json.dumps(said, default=str, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(told.encode()).hexdigest()[:32]
