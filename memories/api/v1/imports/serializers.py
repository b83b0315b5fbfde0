"""Imports: how an uploaded file is read, and what became of it."""

import json
from typing import Any
from zoneinfo import ZoneInfo

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from memories.api.v1.fields import AgentId, ExactText, Identifier, OneOf, OrNull, PageQuery, Strict, Timestamp
from memories.api.v1.filters import where
from memories.curation.imports.verbs import AUTO, ImportOptions
from memories.files import paths
from memories.models import Import, ImportSource

FACTS, ITEMS = "facts", "items"
MOST_AUTHORS = 1_000


class Authors(serializers.DictField):
    """Who is named in the file → the `user_id` that it becomes; "" or null leaves out what is theirs."""

    child = Identifier(allow_null=True, allow_blank=True)
    most_keys = MOST_AUTHORS

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if isinstance(data, str):
            try:
                data = json.loads(data)
            except (ValueError, RecursionError) as error:
                raise ValidationError("Give a JSON object.", code="syntax") from error
        if isinstance(data, dict) and len(data) > MOST_AUTHORS:
            raise ValidationError(f"At most {MOST_AUTHORS:,} names.", code="max_length")
        authors = super().to_internal_value(data)
        # As PostgreSQL and UTF-8 hold it, which is how the file's own are read.
        return {
            name.replace("\0", "").encode("utf-8", "replace").decode(): author or "" for name, author in authors.items()
        }


class ZoneName(ExactText):
    """An IANA name."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        try:
            ZoneInfo(text)
        except (ValueError, OSError, KeyError) as error:
            raise ValidationError("Give a time zone, such as Europe/Berlin.", code="zone") from error
        return text


class ImportsQuery(PageQuery):
    status = where("state", OneOf(Import.State.values, required=False))


class UploadQuery(Strict):
    """How the file is read. In a form these are fields beside `file`; of a raw body they are parameters."""

    source = OneOf([AUTO, *ImportSource.values], required=False, help_text="Without it the source is recognised.")  # type: ignore[assignment]
    user_id = Identifier(required=False, help_text="Whose those are that name nobody.")
    agent_id = AgentId(help_text="The agent of conversations and files.")
    authors = Authors(required=False, help_text="A JSON object: who is named in the file → the `user_id` they become.")
    dry_run = serializers.BooleanField(required=False, help_text="Say what the import would do; `resume` starts it.")
    # `as` is a word of Python.
    form = OneOf([FACTS, ITEMS], required=False, help_text="Of LangGraph's store: what its items become.")
    namespace = ExactText(required=False, max_length=1_000, help_text="As `--namespace` of the command.")
    folder = ExactText(required=False, max_length=1_000, help_text="Of files: the folder that they go to.")
    time_zone = ZoneName(required=False, max_length=64, help_text="Of times that name none.")
    name = ExactText(required=False, max_length=255, allow_blank=True, help_text="What the file is called.")

    def validate_folder(self, value: str) -> str:
        if paths.fault_of_folder(value):
            raise ValidationError("Give a folder of memory files, such as /memories.", code="invalid_path")
        return value


def options_of(given: dict[str, Any]) -> ImportOptions:
    names = {"source": "source", "user_id": "user_id", "agent_id": "agent_id", "authors": "authors"}
    names |= {"namespace": "namespace", "folder": "folder", "time_zone": "zone", "name": "name"}
    found = {ours: given[theirs] for theirs, ours in names.items() if given.get(theirs)}
    return ImportOptions(**found, items=given.get("form") == ITEMS)


class ResumeSerializer(Strict):
    """Whose it is, where the dry run showed that it should be said otherwise."""

    agent_of_key = False

    user_id = Identifier(required=False)
    authors = Authors(required=False)


class ImportSerializer(serializers.Serializer[Import]):
    """An uploaded file, and what came of it; `preview` and the counts of a dry run say what would."""

    id = serializers.UUIDField()
    status = serializers.ChoiceField(Import.State.values, source="state")
    source = OrNull(help_text="Once it is recognised, or named.")  # type: ignore[assignment]
    size = serializers.IntegerField(help_text="Bytes of the file.")
    has_file = serializers.BooleanField(help_text="Whether the hub still has the file.")
    position = serializers.IntegerField(help_text="Conversations, memories, files, items and reasons that were taken.")
    expected = serializers.IntegerField(
        help_text="How many there will be, by how many came of what was read so far; 0: nobody knows yet."
    )
    counts = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="What was stored (`messages`, `facts`, `sections`, `files`, `items`; of an export of a hub "
        "`episodes`, `diary`, `relations` and `in_groups`, too), what waits for an operator (`waiting`), was there "
        "already (`duplicates`), or was cut out (`secrets`); after an undo what went (`…_undone`) and what was `kept` "
        "because it was changed since. Of people whom the import made `people_undone` went, and `people_kept` have "
        "something else. Of a dry run: what would be.",
    )
    left_out = serializers.DictField(child=serializers.IntegerField(), help_text="Reason → how many.")
    refused = serializers.DictField(child=serializers.IntegerField(), help_text="Code → how many.")
    findings = serializers.ListField(
        child=serializers.DictField(),
        help_text="Why a file is not taken, or not as a whole, each with its `code`: `unknown_source` with `expected` "
        "and what was `found`; `cut_off` with the bytes at which the file ends (`at`) and the last document `begins`, "
        "and how many before it are `whole`; `damaged` with the number of the `file` in its archive.",
    )
    failure = OrNull(help_text="Code of the reason why it failed.")
    preview = serializers.JSONField(help_text="Of a dry run, when you get it: people, dates and three samples.")
    created_at = Timestamp()
    started_at = Timestamp(allow_null=True)
    finished_at = Timestamp(allow_null=True)
    undone_at = Timestamp(allow_null=True)
