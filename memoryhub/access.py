"""The settings of sign-in: its lifetime, lockout after wrong passwords, second factor, identity provider."""

from datetime import timedelta
from urllib.parse import urlsplit

from memoryhub import env

_HTTPS = urlsplit(env.text("MEMORYHUB_PUBLIC_URL")).scheme == "https"

AUTHENTICATION_BACKENDS = [
    # First: it rejects locked-out names before a password is checked.
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]

SESSION_COOKIE_AGE = int(3_600 * env.number("MEMORYHUB_SESSION_HOURS", 12, low=0.1, high=720))
MEMORYHUB_SESSION_IDLE_SECONDS = int(60 * env.number("MEMORYHUB_SESSION_IDLE_MINUTES", 60, low=1, high=43_200))

# With https there is a proxy in front of the hub.
MEMORYHUB_TRUSTED_PROXIES = env.integer("MEMORYHUB_TRUSTED_PROXIES", 1 if _HTTPS else 0, low=0, high=5)
AXES_FAILURE_LIMIT = env.integer("MEMORYHUB_LOCKOUT_FAILURES", 5, low=1, high=100)
AXES_COOLOFF_TIME = timedelta(minutes=env.integer("MEMORYHUB_LOCKOUT_MINUTES", 15, low=1, high=1_440))
# Name and address together. By name alone anybody could lock an operator out; by address alone one colleague all
# others.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
# Per hour: a name from all addresses, and an address with all names.
MEMORYHUB_LOCKOUT_NAME_FAILURES = env.integer("MEMORYHUB_LOCKOUT_NAME_FAILURES", 30, low=5, high=10_000)
MEMORYHUB_LOCKOUT_ADDRESS_FAILURES = env.integer("MEMORYHUB_LOCKOUT_ADDRESS_FAILURES", 50, low=5, high=10_000)
# Tries during a lockout do not prolong it: the page shows when it ends.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_HANDLER = "memories.admin.access.lockout.Lockout"
AXES_CLIENT_IP_CALLABLE = "memories.admin.access.lockout.counted_address_of"
AXES_LOCKOUT_CALLABLE = "memories.admin.access.lockout.response"
# Nobody reads a log of sign-ins, and sessions have the same data.
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = AXES_VERBOSE = False
AXES_SENSITIVE_PARAMETERS = ["username", "login", "ip_address", "fresh_password"]

# optional: for operators who set one up. required: for all who sign in with a password.
MEMORYHUB_SECOND_FACTOR = env.choice("MEMORYHUB_SECOND_FACTOR", "off", ("off", "optional", "required"))
MFA_ADAPTER = "memories.admin.access.second_factor.Adapter"
MFA_FORMS = {
    "authenticate": "memories.admin.access.second_factor.CodeForm",
    "reauthenticate": "memories.admin.access.second_factor.AgainForm",
}
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Memory Hub"
# One step of 30 s: tolerates a clock skew of half a minute.
MFA_TOTP_TOLERANCE = 1
MFA_RECOVERY_CODES_SHOW_ONCE = True
# Administrators enter the addresses of operators; nobody confirms them by mail.
MFA_ALLOW_UNVERIFIED_EMAIL = True
ACCOUNT_ADAPTER = "memories.admin.access.sign_in.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if _HTTPS else "http"

MEMORYHUB_OIDC_URL = env.text("MEMORYHUB_OIDC_URL")
MEMORYHUB_OIDC_CLIENT_ID = env.text("MEMORYHUB_OIDC_CLIENT_ID")
MEMORYHUB_OIDC_CLIENT_SECRET = env.text("MEMORYHUB_OIDC_CLIENT_SECRET")
MEMORYHUB_OIDC_NAME = env.text("MEMORYHUB_OIDC_NAME", "your identity provider")
SOCIALACCOUNT_ADAPTER = "memories.admin.access.sign_in.ProviderAdapter"
# By link, since the content security policy allows no form to post to another site.
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "sso",
                "name": MEMORYHUB_OIDC_NAME,
                "client_id": MEMORYHUB_OIDC_CLIENT_ID,
                "secret": MEMORYHUB_OIDC_CLIENT_SECRET,
                "settings": {"server_url": MEMORYHUB_OIDC_URL},
            }
        ]
        if MEMORYHUB_OIDC_URL
        else [],
    }
}

# Sends invitations. Unset: their links are shown to the operator who invites.
_MAIL = env.mail_server("MEMORYHUB_EMAIL_URL")
MEMORYHUB_SENDS_MAIL = _MAIL is not None
EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD, EMAIL_USE_TLS, EMAIL_USE_SSL = _MAIL or env.NO_MAIL
DEFAULT_FROM_EMAIL = env.text(
    "MEMORYHUB_EMAIL_FROM", f"memory-hub@{urlsplit(env.text('MEMORYHUB_PUBLIC_URL')).hostname or 'localhost'}"
)
# The page of the operator who invites waits for the server.
EMAIL_TIMEOUT = 10
