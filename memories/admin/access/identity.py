"""The identity provider of the settings: its name, its sign-in link, and when it authenticated a person."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.http import urlencode

PROVIDER = "sso"
# OpenID Connect: the provider asks for the password even of a signed-in person, and states auth_time.
AGAIN = "prompt=login&max_age=0"
# Clock skew of the provider.
LEEWAY = timedelta(seconds=60)


def provider_name() -> str:
    """The name of the identity provider; empty if there is none."""
    apps: Any = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"]
    return str(apps[0]["name"]) if apps else ""


def provider_link(*, to: str, again: bool = False) -> str:
    """The link that starts signing in. `again`: the provider asks for the password even of a signed-in person."""
    query = {"process": "login", "next": to, **({"auth_params": AGAIN} if again else {})}
    return f"{reverse('openid_connect_login', args=[PROVIDER])}?{urlencode(query)}"


def signed_in_at(sociallogin: Any, *, now: datetime) -> datetime | None:
    """When the provider authenticated the person; None if it does not say or names a time in the future.

    Only the ID token counts, not the other claims.
    """
    token = sociallogin.account.extra_data.get("id_token") or {}
    auth_time = token.get("auth_time")
    if isinstance(auth_time, bool) or not isinstance(auth_time, int | float):
        return None
    return min(datetime.fromtimestamp(auth_time, UTC), now) if 0 <= auth_time <= (now + LEEWAY).timestamp() else None
