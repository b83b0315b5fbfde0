"""What leads to a person where no foreign key does: ids of ours and of the caller's, in texts and packed values."""

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from memories.models import EndUser, Episode, ExtractionRun, Fact, ProfileSection, ReviewItem, Session
from memories.privacy.stores.keeping import called, ids_behind

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
# Shorter names are part of anything: they count as a whole alone.
SHORT = 6
# What has a page of its own, or a task; turns have neither, and may be many.
_OWNED: tuple[Any, ...] = (Session, Fact, Episode, ProfileSection, ReviewItem, ExtractionRun)


@dataclass(frozen=True)
class Traces:
    """Of one person, while they are still there."""

    person: EndUser

    @cached_property
    def words(self) -> set[str]:
        """What they are called by, folded."""
        return called(self.person)

    @cached_property
    def ids(self) -> set[uuid.UUID]:
        """Of the person and of what is theirs."""
        people = ids_behind(self.person)
        rows = (model._default_manager.filter(end_user__in=people) for model in _OWNED)
        return {*people, *(pk for found in rows for pk in found.order_by().values_list("pk", flat=True))}

    def are_in(self, value: Any) -> bool:
        """Whether a value, however nested, leads to the person."""
        return any(self._is_in(text) for text in texts_in(value))

    def _is_in(self, text: str) -> bool:
        if text.strip().casefold() in self.words or (self._long and self._long.search(text)):
            return True
        return any(uuid.UUID(found) in self.ids for found in _UUID.findall(text))

    @cached_property
    def _long(self) -> re.Pattern[str] | None:
        """Any of their longer names, as words of their own."""
        long = [re.escape(word) for word in sorted(self.words) if len(word) >= SHORT]
        return re.compile(rf"(?<!\w)(?:{'|'.join(long)})(?!\w)", re.IGNORECASE) if long else None


def texts_in(value: Any) -> Iterator[str]:
    """Every text of a value, keys included; of what is neither text nor a collection, how it is written."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from texts_in(key)
            yield from texts_in(one)
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from texts_in(one)
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    else:
        yield str(value)
