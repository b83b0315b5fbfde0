"""Messages as SDKs and gateways hand them out, posted verbatim: fields that say nothing of a person are ignored."""

from typing import Any

import pytest

from memories.models import Turn
from tests.api.client import HubClient

pytestmark = pytest.mark.django_db
SAID = "It is nine o'clock."
# What each says, as its sender fills it in.
FIELDS: dict[str, Any] = {
    # OpenAI's chat completions and its library.
    "refusal": None, "annotations": [{"type": "url_citation", "url_citation": {"url": "https://example.org"}}],
    "audio": {"id": "audio_1", "transcript": "It is nine."}, "function_call": None, "parsed": {"hour": 9},
    "logprobs": {"content": []}, "weight": 1, "phase": "final_answer", "finish_reason": "stop", "index": 0,
    # Items of the Responses API.
    "id": "msg_1", "type": "message", "status": "completed", "encrypted_content": "gAAAA", "object": "message",
    # Anthropic's messages.
    "model": "m", "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 3}, "container": None,
    "cache_control": {"type": "ephemeral"}, "citations": [{"cited_text": "nine"}], "signature": "c2ln",
    # Models that think aloud: DeepSeek, vLLM, OpenRouter, LiteLLM.
    "reasoning_content": "The user asks for the time.", "reasoning": "The user asks for the time.",
    "reasoning_details": [{"type": "reasoning.text", "text": "The user asks for the time."}], "thinking": "Time?",
    "thinking_blocks": [{"type": "thinking", "thinking": "Time?", "signature": "s"}], "reasoning_signature": "s",
    "provider_specific_fields": {"citations": [[{"cited_text": "nine"}]]}, "extra_content": {"google": {}},
    # Other endpoints: Mistral, Cohere, Azure, Groq, Perplexity, models with channels.
    "prefix": True, "tool_plan": "I look it up.", "context": {"citations": []}, "end_turn": True, "channel": "final",
    "executed_tools": [{"type": "search"}], "search_results": [{"title": "Time"}], "images": [], "recipient": "all",
    # LangChain and the AI SDK.
    "additional_kwargs": {"refusal": None}, "response_metadata": {"model_name": "m"}, "example": False,
    "usage_metadata": {"total_tokens": 3}, "invalid_tool_calls": [], "tool_call_chunks": [], "artifact": None,
    "parts": [{"type": "text", "text": SAID}], "experimental_attachments": [], "toolInvocations": [],
    "createdAt": "2026-11-20T12:00:00Z", "created_at": "2026-11-20T12:00:00Z", "providerOptions": {"openai": {}},
    "providerMetadata": {"openai": {}}, "is_error": False, "audio_id": "a", "token_count": 3,
}  # fmt: skip


def post(client: HubClient, message: dict[str, Any]) -> Any:
    return client.post("/turns", {"user_id": "u1", "session_id": "s1", "messages": [message]})


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_fields_that_say_nothing_of_a_person_are_ignored(client: HubClient, role: str) -> None:
    """All at once: a refusal would name those that are not."""
    assert post(client, {"role": role, "content": SAID, **FIELDS}).status_code == 202
    assert Turn.objects.get().content == SAID
    # What it thought is nobody's word.
    assert "asks for the time" not in str(Turn.objects.values().get())


@pytest.mark.parametrize("kind", ["text", "input_text", "output_text"])
def test_the_text_of_parts_is_read(client: HubClient, kind: str) -> None:
    part = {"type": kind, "text": SAID, "annotations": [], "cache_control": {"type": "ephemeral"}}
    other = {"type": "thinking", "thinking": "hm", "signature": "s"}
    assert post(client, {"role": "assistant", "content": [other, part]}).status_code == 202
    assert Turn.objects.get().content == SAID


@pytest.mark.parametrize(
    ("over", "pointer", "code"),
    [
        ({"contnet": SAID}, "/messages/0/contnet", "unknown_field"),
        ({"Reasoning": "hm"}, "/messages/0/Reasoning", "unknown_field"),
        ({"content": 9}, "/messages/0/content", "invalid"),
        ({"tool_calls": "none"}, "/messages/0/tool_calls", "not_a_list"),
        ({"role": "narrator"}, "/messages/0/role", "invalid_choice"),
        ({"metadata": []}, "/messages/0/metadata", "invalid"),
        ({"content": [{"type": "input_text", "text": 9}]}, "/messages/0/content/0", "part"),
    ],
)
def test_an_unknown_field_and_a_wrong_type_are_named(
    client: HubClient, over: dict[str, Any], pointer: str, code: str
) -> None:
    answer = post(client, {"role": "user", "content": SAID, **over})
    assert answer.status_code == 400
    assert [(one["pointer"], one["code"]) for one in answer.json()["errors"]] == [(pointer, code)]
    assert not Turn.objects.exists()
