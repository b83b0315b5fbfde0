"""Settings of the tests: nothing of the caller's environment, and an embedded server that ends with them.

A process that pytest-xdist starts works on the server of the one that started it, in a database of its own.
"""

import atexit
import os
from pathlib import Path

from tests import homes, keeper
from tests.scratch import scratch_folder

# The tests of the API, the admin and the rest can run behind policies: MEMORYHUB_ROW_SECURITY=on.
ROW_SECURITY = os.environ.get("MEMORYHUB_ROW_SECURITY", "off")
# Of a database of a Citus cluster: `make distributed` runs some of the tests there.
DISTRIBUTED = os.environ.get("TESTS_DISTRIBUTED", "")
SHARED = os.environ.get("MEMORYHUB_HOME", "") if "PYTEST_XDIST_WORKER" in os.environ else ""

for name in list(os.environ):
    if name.startswith(("MEMORYHUB_", "OPENAI_")) or name == "DATABASE_URL":
        del os.environ[name]

TEST_HOME = Path(SHARED) if SHARED else scratch_folder()
os.environ["MEMORYHUB_HOME"] = str(TEST_HOME)
os.environ["MEMORYHUB_ROW_SECURITY"] = ROW_SECURITY
os.environ["MEMORYHUB_SECRET_KEY"] = "only-for-tests-" + "x" * 40

if DISTRIBUTED:
    owner, runtime = DISTRIBUTED, DISTRIBUTED.replace("memoryhub@", "memoryhub_runtime@")
    os.environ |= {"MEMORYHUB_OWNER_URL": owner, "DATABASE_URL": runtime, "MEMORYHUB_DISTRIBUTED": "1"}
elif not SHARED:
    homes.make(TEST_HOME)
    atexit.register(keeper.end, keeper.start(TEST_HOME))

from memoryhub.settings import *  # noqa: E402, F403

# Tests that extract say how.
MEMORYHUB_LLM = "off"
# Cheap vectors; tests of the real ones say so.
MEMORYHUB_EMBEDDINGS = "hashed"
# The slow, safe hasher would cost every sign-in of the tests a second.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# A test itself is the owner: it sees all rows, until what it calls says how far it reaches.
if ROW_SECURITY != "off":
    DATABASES["default"]["TENANCY_ROLE"] = RUNTIME_ROLE[0]  # type: ignore[index]  # noqa: F405
