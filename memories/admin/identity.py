"""The identity provider of the settings: its name, and where signing in through it begins."""

from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.http import urlencode

PROVIDER = "sso"


def provider_name() -> str:
    """The name of the identity provider; empty when there is none."""
    apps: Any = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"]
    return str(apps[0]["name"]) if apps else ""


def provider_link(*, to: str, again: bool = False) -> str:
    """Where signing in through the provider begins; `again`: it asks for the password though it knows the person."""
    query = {"process": "login", "next": to, **({"auth_params": "prompt=login"} if again else {})}
    return f"{reverse('openid_connect_login', args=[PROVIDER])}?{urlencode(query)}"
