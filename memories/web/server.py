"""The web server: gunicorn's processes, each a loop with threads, for a small machine. Logs hold no personal data."""

import resource
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.utils.module_loading import import_string
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from memories.telemetry.log_fields import ANSWERED_ID, ANSWERED_TENANT
from memories.web.connection import ConnectionLimits
from memories.web.front import MountedApp
from memories.web.worker import LoopWorker
from memoryhub.log_lines import masked

# Of each process: 4 × 8 threads hold at most 32 of the server's 100 connections.
THREADS = 8
# For databases, logs and modules, beside a process's connections.
SPARE_DESCRIPTORS = 200
GRACE_SECONDS = 8
MILLISECOND = timedelta(milliseconds=1)
ACCESS_LOG_FORMAT = '%(t)s "%(m)s %(U)s" %(s)s %(B)s bytes %(M)s ms'


class QuietLogger(Logger):  # type: ignore[misc]
    """Logs no query strings and nothing that a client can shape into a line of its own."""

    def atoms(self, resp: Any, req: Any, environ: Mapping[str, Any], request_time: timedelta) -> dict[str, Any]:
        """The values of ACCESS_LOG_FORMAT. gunicorn's own would format each header of every request as well."""
        return {
            "t": self.now(),
            "m": environ["REQUEST_METHOD"],
            "U": _logged(environ),
            "s": str(resp.status).partition(" ")[0],
            "B": resp.sent,
            "M": request_time // MILLISECOND,
        } | (_fields(resp, environ, request_time) if settings.MEMORYHUB_LOG_FORMAT == "json" else {})

    def setup(self, cfg: Any) -> None:
        """gunicorn has streams and formats of its own."""
        super().setup(cfg)
        if settings.MEMORYHUB_LOG_FORMAT == "json":
            formatters: Any = settings.LOGGING["formatters"]
            for logger in (self.error_log, self.access_log):
                for handler in logger.handlers:
                    handler.setFormatter(import_string(formatters["json"]["class"])())

    def exception(self, message: str, *args: Any, **options: Any) -> None:
        # The arguments hold the address with its query.
        super().exception(message.partition("%")[0], **options)


def _logged(environ: Mapping[str, Any]) -> str:
    """The path. It is decoded: a line break in it would begin a new line of the log. A declared path has braces."""
    return quote(masked(environ.get("PATH_INFO") or ""), safe="/{}")


def _fields(resp: Any, environ: Mapping[str, Any], took: timedelta) -> dict[str, Any]:
    """An answer in fields of a line of JSON."""
    return {
        "method": environ["REQUEST_METHOD"],
        "path": _logged(environ),
        "status": int(str(resp.status).partition(" ")[0]),
        "bytes": resp.sent,
        "milliseconds": took // MILLISECOND,
        "request_id": environ.get(ANSWERED_ID, ""),
        "tenant": environ.get(ANSWERED_TENANT, ""),
    }


class WebServer(BaseApplication):  # type: ignore[misc]
    """gunicorn with the hub's settings. `bind` is host:port, or fd://N for a socket that listens already."""

    # Make what answers in the loop, beside the WSGI application (web/front.py).
    beside: Sequence[Callable[..., MountedApp]] = ()

    @staticmethod
    def upload_bytes(_method: str, _path: str) -> int:
        """How large a file may come there; 0: none."""
        return 0

    def __init__(self, bind: str, limits: ConnectionLimits | None = None, *, wait_seconds: float = 0.0) -> None:
        """`wait_seconds`: how long a request may wait for a thread; 0: as long as it takes."""
        self._bind, self.wait_seconds = bind, wait_seconds
        self.limits = limits or ConnectionLimits()
        super().__init__()

    def run(self) -> None:
        _allow_descriptors(self.limits.connections + SPARE_DESCRIPTORS)
        super().run()

    def load_config(self) -> None:
        options = {
            "bind": self._bind,
            "workers": settings.WEB_PROCESSES,
            "worker_class": LoopWorker,
            "threads": THREADS,
            "graceful_timeout": GRACE_SECONDS,
            # The forked processes share what is loaded: they start at once and use less memory.
            "preload_app": True,
            "control_socket_disable": True,
            "child_exit": lambda _server, worker: worker.connection_count.free(),
            "logger_class": QuietLogger,
            # Below this level gunicorn quotes what a broken request contained.
            "loglevel": "error",
            "accesslog": "-",
            "access_log_format": ACCESS_LOG_FORMAT,
        }
        for name, value in options.items():
            self.cfg.set(name, value)


def _allow_descriptors(count: int) -> None:
    """Raise the limit of open files: it is often 1,024, and a process may ask for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
