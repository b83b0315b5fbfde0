"""Settings of the tests: nothing of the caller's environment, and an embedded server that ends with them."""

import atexit
import os

from tests import keeper
from tests.scratch import scratch_folder

for name in list(os.environ):
    if name.startswith(("MEMORYHUB_", "OPENAI_")) or name == "DATABASE_URL":
        del os.environ[name]

TEST_HOME = scratch_folder()
os.environ["MEMORYHUB_HOME"] = str(TEST_HOME)
os.environ["MEMORYHUB_SECRET_KEY"] = "only-for-tests-" + "x" * 40

atexit.register(keeper.end, keeper.start(TEST_HOME))

from memoryhub.settings import *  # noqa: E402, F403

# Tests that extract say how.
MEMORYHUB_LLM = "off"
# Cheap vectors; tests of the real ones say so.
MEMORYHUB_EMBEDDINGS = "hashed"
# The slow, safe hasher would cost every sign-in of the tests a second.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
