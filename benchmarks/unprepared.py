"""The hub's settings, but that no statement is prepared: PostgreSQL plans each one anew."""

from memoryhub.settings import *  # noqa: F403
from memoryhub.settings import DATABASES

DATABASES["default"]["OPTIONS"]["prepare_threshold"] = None
