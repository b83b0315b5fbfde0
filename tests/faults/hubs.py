"""A whole hub whose model is of the test's own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from memoryhub import embedded_postgres
from tests import homes
from tests.commands.hub import RUNNING, Hub
from tests.llm.endpoint import Response
from tests.llm.endpoint import running as endpoint_running
from tests.scratch import scratch_folder

# Short, so that what is lost shows soon.
SHORT = {"MEMORYHUB_DEBOUNCE_SECONDS": "1", "MEMORYHUB_LEASE_SECONDS": "8", "MEMORYHUB_LLM_TIMEOUT": "7"}


@contextmanager
def hub_asking(model: Response, **environ: str) -> Iterator[Hub]:
    """`manage.py up` with this model and these variables; nothing of it is left."""
    folder = scratch_folder()
    hub = Hub(homes.make(folder / "home"))
    with endpoint_running() as endpoint:
        endpoint.responds(model)
        hub.run("up", **{"OPENAI_BASE_URL": endpoint.url, **SHORT, **environ})
        try:
            hub.wait_for(RUNNING)
            yield hub
        finally:
            hub.end()
            embedded_postgres.stop(hub.home)
            shutil.rmtree(folder)


def assert_sound(hub: Hub, **own: str) -> None:
    """By the hub's own word; `own` is of its environment."""
    manage(hub, "check_memory", **own)


def manage(hub: Hub, *words: str, **own: str) -> None:
    """Run a command of manage.py in its home, which is to succeed; `own` is of its environment."""
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "memoryhub.settings", "MEMORYHUB_HOME": str(hub.home), **own}
    command = [sys.executable, "manage.py", *words]
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
