"""Signing in, as settings: how long it lasts, lockout after wrong passwords, second factor, identity provider."""

from datetime import timedelta
from urllib.parse import urlsplit

from memoryhub import env

_HTTPS = urlsplit(env.text("MEMORYHUB_PUBLIC_URL")).scheme == "https"

AUTHENTICATION_BACKENDS = [
    # The first: it refuses whoever is locked out before a password is looked at.
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]

SESSION_COOKIE_AGE = int(3_600 * env.number("MEMORYHUB_SESSION_HOURS", 12, low=0.1, high=720))
MEMORYHUB_SESSION_IDLE_SECONDS = int(60 * env.number("MEMORYHUB_SESSION_IDLE_MINUTES", 60, low=1, high=43_200))

# With https there is a proxy before the hub.
MEMORYHUB_TRUSTED_PROXIES = env.integer("MEMORYHUB_TRUSTED_PROXIES", 1 if _HTTPS else 0, low=0, high=5)
AXES_FAILURE_LIMIT = env.integer("MEMORYHUB_LOCKOUT_FAILURES", 5, low=1, high=100)
AXES_COOLOFF_TIME = timedelta(minutes=env.integer("MEMORYHUB_LOCKOUT_MINUTES", 15, low=1, high=1_440))
# Both together: by the name alone anybody could lock an operator out, by the address alone one colleague all others.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
# What the page promises holds, however often somebody tries meanwhile.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_CLIENT_IP_CALLABLE = "memories.admin.lockout.address_of"
AXES_LOCKOUT_CALLABLE = "memories.admin.lockout.response"
# Who signed in and out is kept for nobody to read: the sessions know it.
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = AXES_VERBOSE = False
AXES_SENSITIVE_PARAMETERS = ["username", "login", "ip_address", "fresh_password"]
