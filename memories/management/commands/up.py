"""`manage.py up`: runs the whole hub in the foreground (database, migrations, demo, web, worker)."""

import errno
import gc
import json
import logging
import os
import select
import shlex
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from django.urls import reverse
from django.utils import timezone

from memories import conf
from memories.jobs.supervision import DESCRIPTORS, Fork, Supervisor, ending, follow_parent, own_child
from memories.llm import client, embeddings, tokens
from memories.management import HubCommand, demo
from memories.management.commands import worker
from memories.management.demo import DemoAccess
from memories.text.injection import detection
from memoryhub import embedded_postgres, roles

BACKLOG = 2048
DATABASE_LOOK_SECONDS = 2.0
DATABASE_PAUSE_SECONDS = 30.0
# Of web, worker and embedder.
SHARED = (
    "memories.tasks",
    "memories.jobs.cluster",
    "memories.jobs.embedder",
    "memories.web.application",
    "memories.mcp_server.protocol",
)
# Any number that nothing else locks: "memoryhub" on a telephone's keys.
PREPARATION_LOCK = 636_679_482

logger = logging.getLogger(__name__)


class Command(HubCommand):
    help = "Start the whole hub: database, migrations, demo data, web and worker. Ctrl-C ends it."

    def handle(self, **_options: Any) -> None:
        # Bind the port first and keep it. Nobody takes it before the start, a second `up` ends here, and clients wait
        # while the web server restarts.
        with _listen(settings.PORT) as listener, _database():
            if _is_embedded():
                # One that was left behind may run without the archive that is set now, or with another one.
                embedded_postgres.renew(settings.HOME)
            seeded = self._prepare_beside(_load) if DESCRIPTORS.is_dir() else self._prepare()
            # The children only serve: they do not get the owner's address.
            _forget_owner()
            web = own_child("web", "--bind", f"fd://{listener.fileno()}", inherited=[listener.fileno()])
            Supervisor([web, *worker.parts()]).run(Watch(self.say, seeded).look)
        self.say("Memory Hub has stopped.")

    def say(self, text: str) -> None:
        """Write at once, not when a buffer is full."""
        if settings.MEMORYHUB_LOG_FORMAT == "json":
            logger.info("%s", text)
            return
        self.stdout.write(text)
        self.stdout.flush()

    def _prepare_beside(self, load: Callable[[], None]) -> DemoAccess | None:
        """`_prepare` in a fork, while this process loads. Migrations leave 100 MB behind, which end with the fork."""
        leash, held = os.pipe()
        reading, writing = os.pipe()

        def prepare() -> None:
            follow_parent(grace=0.0)
            answer: dict[str, Any]
            try:
                seeded = self._prepare()
                answer = {"seeded": asdict(seeded) if seeded else None}
            except CommandError as error:
                answer = {"error": str(error)}
            os.write(writing, json.dumps(answer).encode())

        preparing = Fork(prepare, stdin=leash, inherited=[writing])
        os.close(writing)
        try:
            load()
            # To the end of the pipe, which comes in any case.
            with os.fdopen(reading) as answers:
                answer = answers.read()
        finally:
            # Its death, if it is not done.
            os.close(held)
            os.close(leash)
            ended = preparing.wait()
        if not answer:
            raise CommandError(f"The database was not prepared: the process for it ended with {ending(ended)}.")
        found: dict[str, Any] = json.loads(answer)
        if "error" in found:
            raise CommandError(found["error"])
        return DemoAccess(**found["seeded"]) if found["seeded"] else None

    def _prepare(self) -> DemoAccess | None:
        """Migrate, and seed the demo into an empty local hub. Returns how to get in, if it was seeded now."""
        self.say("Preparing the database …")
        try:
            with connection.cursor() as cursor:
                # The connection holds the lock until it is closed: two hubs on one database migrate in turn.
                cursor.execute("SELECT pg_advisory_lock(%s)", [PREPARATION_LOCK])
            call_command("migrate", interactive=False, verbosity=0)
            return demo.seed_and_note(now=timezone.now()) if demo.wanted() else None
        except OperationalError as error:
            raise CommandError(f"The database cannot be used: {error}") from error
        finally:
            connections.close_all()
            self.stdout.flush()


def _load() -> None:
    """Load what the children need. They are forked from this process, and share it."""
    tokens.preload()
    client.preload()
    detection.preload()
    # They say what is wrong.
    embeddings.warm_needed()
    for name in SHARED:
        import_module(name)
    # Loads the API and the admin, and fills the table of addresses.
    reverse("admin:index")
    # A collection that looked through what stays would make a copy of it in each child.
    gc.collect()
    gc.freeze()


def _forget_owner() -> None:
    """From now on this process is one of those that serve, as its children will be."""
    roles.serve()
    # The dictionary that django.db.connections holds, too. What was made of it before remembers how it was.
    settings.DATABASES[DEFAULT_DB_ALIAS].update(settings.SERVING_DATABASE)
    connections.close_all()
    with suppress(AttributeError):
        del connections[DEFAULT_DB_ALIAS]
    settings.DIRECT_DATABASE = settings.SERVING_DIRECT_DATABASE
    settings.OWNER.clear()


class Watch:
    """Runs beside the children: announces once that the hub answers, and keeps the database up."""

    def __init__(self, say: Callable[[str], None], seeded: DemoAccess | None) -> None:
        self._say, self._seeded = say, seeded
        self._probe = Probe(settings.PORT)
        self._announced = False
        self._look_at = 0.0

    def look(self, now: float) -> None:
        if not self._announced and self._probe.has_answered():
            self._announced = True
            self._say(greeting(self._seeded))
        if _is_embedded() and now >= self._look_at:
            self._look_at = now + DATABASE_LOOK_SECONDS
            try:
                embedded_postgres.ensure_running(settings.HOME)
            except embedded_postgres.EmbeddedPostgresError as error:
                # A full disk, for example. The hub goes on by itself once there is space again.
                logger.error("%s", error)
                self._look_at = now + DATABASE_PAUSE_SECONDS


class Probe:
    """One request to the web server, without waiting: the answer shows that the server is up."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def has_answered(self) -> bool:
        """False also when the server died during the request. The next call then makes a new one."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port))
            self._socket.sendall(b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        if not select.select([self._socket], [], [], 0)[0]:
            return False
        with self._socket as answered:
            self._socket = None
            try:
                return answered.recv(1) != b""
            except ConnectionResetError:
                return False


_KEPT = "No language model configured: messages are kept as written."
# Lines of the greeting for each way to work without a model.
MODELLESS = {
    conf.LLM_RULES: [
        _KEPT,
        "Simple rules make facts of requests to remember, wishes and plain statements.",
        "What they are less sure of waits for review.",
        "Set OPENAI_API_KEY or OPENAI_BASE_URL to have facts extracted by a model.",
    ],
    conf.LLM_OFF: [_KEPT],
}


def greeting(seeded: DemoAccess | None = None) -> str:
    """The address of the hub and, when the demo was seeded now, its sign-in and key with a command to paste. Logs that
    programs collect are no place for a key."""
    if settings.MEMORYHUB_LOG_FORMAT == "json":
        return f"Memory Hub is running: {settings.PUBLIC_URL}/admin/"
    lines = ["", f"Memory Hub is running: {settings.PUBLIC_URL}/admin/", *_demo_lines(seeded)]
    if _is_embedded():
        lines.append(f"Data: {embedded_postgres.folder(settings.HOME)}")
    lines += MODELLESS.get(conf.llm().mode, [])
    return "\n".join([*lines, "Ctrl-C stops everything.", ""])


def _demo_lines(seeded: DemoAccess | None) -> list[str]:
    if seeded is None and demo.path().exists():
        return [f"The demo's sign-in and key are in {demo.path()}."]
    if seeded is None:
        return ["No demo in this database. Make a key: manage.py create_api_key --tenant NAME --scopes read,ingest"]
    curl = ["curl", "-sS", f"{settings.PUBLIC_URL}/api/v1/context", "-H", f"Authorization: Bearer {seeded.api_key}"]
    curl += ["-H", "Content-Type: application/json", "-d", json.dumps({"user_id": seeded.user_id})]
    return [
        f"Sign in: {seeded.username} / {seeded.password}",
        f"API key: {seeded.api_key}",
        "What an agent would be told about the demo user:",
        shlex.join(curl),
    ]


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
