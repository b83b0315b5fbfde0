"""Settings of the tests: nothing of the caller's environment, and an embedded server that ends with them."""

import atexit
import os
import shutil
from contextlib import ExitStack

from tests.scratch import scratch_folder

for name in list(os.environ):
    if name.startswith(("MEMORYHUB_", "OPENAI_")) or name == "DATABASE_URL":
        del os.environ[name]

TEST_HOME = scratch_folder()
os.environ["MEMORYHUB_HOME"] = str(TEST_HOME)
os.environ["MEMORYHUB_SECRET_KEY"] = "only-for-tests-" + "x" * 40

from memoryhub import embedded_postgres  # noqa: E402

_running = ExitStack()
_running.enter_context(embedded_postgres.attached(TEST_HOME, fast=True))


def _end() -> None:
    _running.close()
    shutil.rmtree(TEST_HOME, ignore_errors=True)


atexit.register(_end)

from memoryhub.settings import *  # noqa: E402, F403

# The slow, safe hasher would cost every sign-in of the tests a second.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
