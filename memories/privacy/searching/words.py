"""Where words stand: an id of the hub's own in what somebody said is their word, elsewhere it is a trace of ours.

A column that is not named here is the hub's own: what stands there of a person refers to them.
"""

import json
from collections.abc import Mapping
from typing import Any

# Model → columns with nothing but what people, their application or a model said, and staff of a case or a question.
SAID: Mapping[str, frozenset[str]] = {
    "memories.EndUser": frozenset({"external_id", "display_name", "metadata"}),
    "memories.Session": frozenset({"external_id", "agent_id"}),
    "memories.Turn": frozenset(
        {"content", "parts", "name", "tool_calls", "tool_call_id", "metadata", "external_id"},
    ),
    "memories.Fact": frozenset(
        {"content", "raw", "structured", "key", "value", "tags", "source_error", "agent_id", "allowed_roles"},
    ),
    "memories.FactEvidence": frozenset({"quote"}),
    "memories.FactRevision": frozenset({"reason"}),
    "memories.Episode": frozenset({"summary", "key_topics", "actions_taken", "outcomes"}),
    "memories.ProfileSection": frozenset({"summary"}),
    "memories.ProfileRevision": frozenset({"before", "after", "reason"}),
    "memories.WorkingMemory": frozenset({"summary"}),
    "memories.ReviewItem": frozenset({"note"}),
    "memories.PrivacyCase": frozenset(
        {"channel", "reference", "extension_reason", "refusal_reason", "hold_reason", "told", "outcome"},
    ),
    # A copy of all that, which names nobody else's rows.
    "memories.PrivacyExport": frozenset({"content"}),
}
# JSON that the hub wrote around such words; there they stand under the names that they have above, and these.
AROUND = frozenset({"memories.FactRevision.before", "memories.FactRevision.after", "memories.IdempotencyRecord.body"})
_QUOTED = frozenset({"user_id", "session_id", "channel", "reference"}).union(
    *(SAID[f"memories.{model}"] for model in ("EndUser", "Turn", "Fact", "FactEvidence", "Episode"))
)


def written(place: str, value: bytes) -> bytes:
    """What the hub itself wrote of a column's value: all of it but for what somebody said."""
    label, _, column = place.rpartition(".")
    if column in SAID.get(label, ()):
        return b""
    return _unquoted(value) if place in AROUND else value


def _unquoted(value: bytes) -> bytes:
    try:
        told = json.loads(bytes.fromhex(value[2:].decode()) if value.startswith(rb"\x") else value)
    except ValueError:
        return value
    return json.dumps(_rest(told), ensure_ascii=False).encode("utf-8", "replace")


def _rest(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: _rest(one) for name, one in told.items() if name not in _QUOTED}
    return [_rest(one) for one in told] if isinstance(told, list) else told
