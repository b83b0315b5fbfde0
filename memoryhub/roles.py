"""The database role of a process. Commands connect as the owner; processes that serve have fewer rights.

Standard library only: manage.py calls it before Django is set up.
"""

import os

OWNER_URL = "MEMORYHUB_OWNER_URL"
# Commands that answer clients or process their input.
SERVING = frozenset({"web", "worker", "embedder", "runserver", "qcluster"})
# Child processes inherit it, such as those of gunicorn.
_MARK = "_MEMORYHUB_SERVES"


def choose_role(command: str) -> None:
    """Choose the role for a command of manage.py, before the settings are loaded."""
    if command in SERVING:
        serve()
    else:
        os.environ.pop(_MARK, None)


def serve() -> None:
    """This process and its children serve. They do not get the owner's password."""
    os.environ[_MARK] = "yes"
    forget_owner()


def forget_owner() -> None:
    """Keep the owner's password from children of this process."""
    os.environ.pop(OWNER_URL, None)


def serves() -> bool:
    return _MARK in os.environ
