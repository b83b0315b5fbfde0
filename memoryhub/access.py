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

# off: the password alone; optional: for operators who set one up; required: for all who sign in with a password.
MEMORYHUB_SECOND_FACTOR = env.choice("MEMORYHUB_SECOND_FACTOR", "off", ("off", "optional", "required"))
MFA_ADAPTER = "memories.admin.second_factor.Adapter"
MFA_FORMS = {"authenticate": "memories.admin.second_factor.CodeForm"}
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Memory Hub"
# A clock may be half a minute off.
MFA_TOTP_TOLERANCE = 1
MFA_RECOVERY_CODES_SHOW_ONCE = True
# Addresses of operators are what administrators wrote; nobody confirms them by mail.
MFA_ALLOW_UNVERIFIED_EMAIL = True
ACCOUNT_ADAPTER = "memories.admin.sign_in.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if _HTTPS else "http"

MEMORYHUB_OIDC_URL = env.text("MEMORYHUB_OIDC_URL")
MEMORYHUB_OIDC_CLIENT_ID = env.text("MEMORYHUB_OIDC_CLIENT_ID")
MEMORYHUB_OIDC_CLIENT_SECRET = env.text("MEMORYHUB_OIDC_CLIENT_SECRET")
MEMORYHUB_OIDC_NAME = env.text("MEMORYHUB_OIDC_NAME", "your identity provider")
SOCIALACCOUNT_ADAPTER = "memories.admin.sign_in.ProviderAdapter"
# By a link: the policy of the pages lets no form lead elsewhere.
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
