"""`manage.py up`: the whole hub in the foreground (database, migrations, demo, web, worker)."""

import errno
import http.client
import json
import os
import shlex
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection, connections

from memories import conf
from memories.management.supervision import Child, Supervisor
from memoryhub import embedded_postgres

BACKLOG = 2048
DATABASE_LOOK_SECONDS = 2.0
# Any number that nothing else locks: "memoryhub" on a telephone's keys.
PREPARATION_LOCK = 636_679_482


class Command(BaseCommand):
    help = "Start the whole hub: database, migrations, demo data, web and worker. Ctrl-C ends it."

    def handle(self, **_options: Any) -> None:
        # Before anything else starts, and kept: the port cannot be lost between this look and the start, a
        # second `up` ends here, and clients wait while the web server is being started again.
        with _listen(settings.PORT) as listener, _database():
            self._prepare()
            bind = f"fd://{listener.fileno()}"
            web = Child("web", _command("web", "--bind", bind), inherited=[listener.fileno()])
            Supervisor([web, Child("worker", _command("worker"))]).run(Watch(self.say).look)
        self.say("Memory Hub has stopped.")

    def say(self, text: str) -> None:
        """Write to the terminal, file or pipe now, not when a buffer is full."""
        self.stdout.write(text)
        self.stdout.flush()

    def _prepare(self) -> None:
        self.say("Preparing the database …")
        try:
            with connection.cursor() as cursor:
                # Held until the connection is closed: two hubs on one database migrate one after the other.
                cursor.execute("SELECT pg_advisory_lock(%s)", [PREPARATION_LOCK])
            call_command("migrate", interactive=False, verbosity=0)
            call_command("seed_demo", stdout=self.stdout)
        except OperationalError as error:
            raise CommandError(f"The database cannot be used: {error}") from error
        finally:
            connections.close_all()


class Watch:
    """What `up` looks after while its children run: says once that the hub answers, keeps the database up."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._announced = False
        self._looked_at = 0.0

    def look(self, now: float) -> None:
        if not self._announced and _answers(settings.PORT):
            self._announced = True
            self._say(greeting())
        if _is_embedded() and now - self._looked_at >= DATABASE_LOOK_SECONDS:
            self._looked_at = now
            embedded_postgres.ensure_running(settings.HOME)


def greeting() -> str:
    """What a newcomer needs: the address, the demo's sign-in and key, a line to paste."""
    lines = ["", f"Memory Hub is running: {settings.PUBLIC_URL}/admin/", *_demo_lines()]
    if _is_embedded():
        lines.append(f"Data: {embedded_postgres.folder(settings.HOME)}")
    if conf.llm().mode == conf.LLM_OFF:
        lines.append(
            "No language model configured: messages are kept as written. "
            "Set OPENAI_API_KEY or OPENAI_BASE_URL to have facts extracted."
        )
    return "\n".join([*lines, "Ctrl-C stops everything.", ""])


def _demo_lines() -> list[str]:
    try:
        demo = json.loads((settings.HOME / "demo.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ["No demo in this database. Make a key: manage.py create_api_key --tenant NAME --scopes read,ingest"]
    curl = ["curl", "-sS", f"{settings.PUBLIC_URL}/api/v1/context", "-H", f"Authorization: Bearer {demo['api_key']}"]
    curl += ["-H", "Content-Type: application/json", "-d", json.dumps({"user_id": demo["user_id"]})]
    return [
        f"Sign in: {demo['username']} / {demo['password']}",
        f"API key: {demo['api_key']}",
        "What an agent would be told about the demo user:",
        shlex.join(curl),
    ]


def _command(*arguments: str) -> list[str]:
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments, "--supervised"]


def _is_embedded() -> bool:
    return not os.environ.get("DATABASE_URL", "").strip()


def _database() -> AbstractContextManager[None]:
    return embedded_postgres.attached(settings.HOME) if _is_embedded() else nullcontext()


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
    except OSError as error:
        reason = "is in use: by another hub?" if error.errno == errno.EADDRINUSE else f"is closed: {error.strerror}."
        raise CommandError(f"Port {port} {reason} Free it, or set MEMORYHUB_PORT.", returncode=2) from error


def _answers(port: int) -> bool:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=0.5)
    try:
        client.request("GET", "/healthz")
        client.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()
    return True
