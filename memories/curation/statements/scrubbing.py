"""The fields of people, facts and episodes that are scrubbed before anything is stored (rules.md, 1.2)."""

from typing import Any

from memories.models.memories.episodes import LISTS, LONGEST_SUMMARY
from memories.text.secrets.scrubbing import scrubbed_json, scrubbed_text

# Lengths of the columns: a mark can be longer than the secret that it replaces.
_TEXTS = {"content": None, "source_error": None, "raw": None, "key": 100, "value": 500}
_LONGEST_TAG = 100
_LONGEST_NAME = 255


def scrubbed_person(changes: dict[str, Any]) -> dict[str, Any]:
    """The named fields of a person's record; each secret in name and metadata is replaced by its mark."""
    scrubbed = dict(changes)
    if changes.get("display_name"):
        scrubbed["display_name"] = scrubbed_text(changes["display_name"], longest=_LONGEST_NAME)
    if changes.get("metadata"):
        scrubbed["metadata"] = scrubbed_json(changes["metadata"])
    return scrubbed


def scrubbed_fact(fields: dict[str, Any]) -> dict[str, Any]:
    """The named fields of a fact; each secret in them is replaced by its mark; JSON at any depth."""
    scrubbed = dict(fields)
    if fields.get("key") and fields.get("value"):
        # A key such as "password" announces its value.
        (scrubbed["value"],) = scrubbed_json({fields["key"]: fields["value"]}).values()
    for name, longest in _TEXTS.items():
        if scrubbed.get(name):
            scrubbed[name] = scrubbed_text(scrubbed[name], longest=longest)
    if fields.get("tags"):
        tags = (scrubbed_text(tag, longest=_LONGEST_TAG) for tag in fields["tags"])
        scrubbed["tags"] = [tag for tag in tags if tag]
    if fields.get("structured"):
        scrubbed["structured"] = scrubbed_json(fields["structured"])
    return scrubbed


def scrubbed_episode(fields: dict[str, Any]) -> dict[str, Any]:
    """The named fields of an episode; each secret in them is replaced by its mark."""
    scrubbed = dict(fields)
    if fields.get("summary"):
        scrubbed["summary"] = scrubbed_text(fields["summary"], longest=LONGEST_SUMMARY)
    for name in LISTS:
        if fields.get(name):
            scrubbed[name] = [scrubbed_text(text, longest=LONGEST_SUMMARY) for text in fields[name]]
    return scrubbed
