"""An administrator's browser, one of staff without any permission, and one of staff with some."""

from collections.abc import Callable

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Permission
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client
from django.utils import timezone

from memories.admin.access.fresh import GIVEN_AT
from memories.admin.access.lifetime import BEGAN_AT, SEEN_AT
from memories.models import Operator
from tests import factories


@pytest.fixture
def administrator(db: None) -> Operator:
    return factories.operator()


@pytest.fixture
def admin(administrator: Operator) -> Client:
    return signed_in(administrator)


@pytest.fixture
def staff(db: None) -> Client:
    """Staff without any permission."""
    return signed_in(factories.operator(is_superuser=False))


@pytest.fixture
def staff_who_may(db: None) -> Callable[..., Client]:
    """Staff with the named permissions alone, e.g. "view_fact"."""

    def make(*codenames: str) -> Client:
        operator = factories.operator(is_superuser=False)
        operator.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        return signed_in(operator)

    return make


def signed_in(operator: Operator, *, fresh: bool = True) -> Client:
    """A browser in which the operator signed in, and gave the password just now or longer ago.

    What a sign-in leaves, without the ten statements of one: most tests begin with it.
    """
    client, now, session = Client(), timezone.now().timestamp(), SessionStore()
    session.update({
        SESSION_KEY: str(operator.pk),
        BACKEND_SESSION_KEY: settings.AUTHENTICATION_BACKENDS[-1],
        HASH_SESSION_KEY: operator.get_session_auth_hash(),
        BEGAN_AT: now,
        SEEN_AT: now,
        **({GIVEN_AT: now} if fresh else {}),
    })  # fmt: skip
    session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = str(session.session_key)
    return client
