"""Cuts secrets out of what is stated outright, before anything is stored (rules.md, 1.2)."""

from typing import Any

from memories.models.memories.episodes import LONGEST_SUMMARY
from memories.text.secrets.redaction import redact_message, redact_text

# Lengths of the columns: a mark can be longer than the secret that it replaces.
_TEXTS = {"content": None, "source_error": None, "raw": None, "key": 100, "value": 500}
_LISTS_OF_EPISODE = ("key_topics", "actions_taken", "outcomes")
_LONGEST_TAG = 100
_LONGEST_NAME = 255


def person_without_secrets(changes: dict[str, Any]) -> dict[str, Any]:
    """The named fields of a person's record, each secret in name and metadata replaced by its mark."""
    scrubbed = dict(changes)
    if changes.get("display_name"):
        scrubbed["display_name"] = redact_text(changes["display_name"])[0][:_LONGEST_NAME]
    if changes.get("metadata"):
        scrubbed["metadata"] = redact_message(content="", metadata=changes["metadata"]).metadata
    return scrubbed


def without_secrets(fields: dict[str, Any]) -> dict[str, Any]:
    """The named fields of a fact, each secret in them replaced by its mark; JSON at any depth."""
    scrubbed = dict(fields)
    if fields.get("key") and fields.get("value"):
        # A key such as "password" announces its value.
        (scrubbed["value"],) = redact_message(content="", metadata={fields["key"]: fields["value"]}).metadata.values()
    for name, longest in _TEXTS.items():
        if scrubbed.get(name):
            scrubbed[name] = redact_text(scrubbed[name])[0][:longest]
    if fields.get("tags"):
        scrubbed["tags"] = [redact_text(tag)[0][:_LONGEST_TAG] for tag in fields["tags"]]
    if fields.get("structured"):
        scrubbed["structured"] = redact_message(content="", metadata=fields["structured"]).metadata
    return scrubbed


def episode_without_secrets(fields: dict[str, Any]) -> dict[str, Any]:
    """The named fields of an episode, each secret in them replaced by its mark."""
    scrubbed = dict(fields)
    if fields.get("summary"):
        scrubbed["summary"] = redact_text(fields["summary"])[0][:LONGEST_SUMMARY]
    for name in _LISTS_OF_EPISODE:
        if fields.get(name):
            scrubbed[name] = [redact_text(text)[0][:LONGEST_SUMMARY] for text in fields[name]]
    return scrubbed
