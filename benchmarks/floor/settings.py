"""As little as Django REST framework needs; the database is the hub's, with Django's own defaults for a connection."""

from memoryhub import settings as hub

_KEPT = ("ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT", "CONN_MAX_AGE")

SECRET_KEY = "only-for-the-floor"
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "benchmarks.floor.urls"
INSTALLED_APPS = ["rest_framework", "benchmarks.floor"]
# It alone: without a Content-Length each answer would be sent in chunks.
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
DATABASES = {"default": {name: hub.DATABASES["default"][name] for name in _KEPT}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "UNAUTHENTICATED_USER": None,
}
LOGGING = hub.LOGGING
WEB_PROCESSES = hub.WEB_PROCESSES
# The server counts how long requests wait.
HOME = hub.HOME / "floor"
MEMORYHUB_LOG_FORMAT = hub.MEMORYHUB_LOG_FORMAT
