"""System checks: settings that contradict each other stop the start with an id and what to do."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

SECRET_KEY_LENGTH = 32


@register()
def lease_outlasts_call(**_: Any) -> list[CheckMessage]:
    """A lease that ends during one call would let a second worker repeat it."""
    lease, timeout = settings.MEMORYHUB_LEASE_SECONDS, settings.MEMORYHUB_LLM_TIMEOUT
    if lease > timeout:
        return []
    hint = "Raise MEMORYHUB_LEASE_SECONDS above MEMORYHUB_LLM_TIMEOUT."
    problem = f"The lease ({lease} s) ends before one model call may ({timeout:g} s)."
    return [Error(problem, hint=hint, id="memories.E001")]


@register()
def scripted_needs_a_file(**_: Any) -> list[CheckMessage]:
    if settings.MEMORYHUB_LLM != "scripted" or settings.MEMORYHUB_LLM_SCRIPT:
        return []
    hint = "Set MEMORYHUB_LLM_SCRIPT to the path of a JSON file."
    return [Error("MEMORYHUB_LLM=scripted has no file of answers.", hint=hint, id="memories.E002")]


@register()
def openai_needs_an_endpoint(**_: Any) -> list[CheckMessage]:
    if settings.MEMORYHUB_LLM != "openai" or settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL:
        return []
    hint = "Set OPENAI_API_KEY or OPENAI_BASE_URL."
    return [Error("MEMORYHUB_LLM=openai has neither a key nor an address.", hint=hint, id="memories.E003")]


@register()
def secret_key_is_long(**_: Any) -> list[CheckMessage]:
    """It signs sign-ins and task payloads: a short one can be guessed."""
    length = len(settings.SECRET_KEY)
    if length >= SECRET_KEY_LENGTH:
        return []
    hint = "Set MEMORYHUB_SECRET_KEY to the output of `openssl rand -hex 32`, or unset it: one is generated and kept."
    problem = f"The secret key has {length} characters; {SECRET_KEY_LENGTH} are the least."
    return [Error(problem, hint=hint, id="memories.E004")]
