"""The web server: gunicorn with threads, configured for a small machine and for logs without people in them."""

import gc
import logging
import os
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.core.servers.basehttp import get_internal_wsgi_application
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from memories.exceptions import EmbeddingError
from memories.llm import embeddings, tokens
from memories.pipeline import recalls

# Requests wait for the database most of their time: threads for that, a second process for a second core.
# 4 × 8 threads hold at most 32 of the server's 100 connections.
PROCESSES = min(max(os.cpu_count() or 1, 2), 4)
THREADS = 8
GRACE_SECONDS = 8
# New objects between two looks for garbage; at Python's 700 several fall into each request.
GARBAGE_AT_ONCE = 5_000
MILLISECOND = timedelta(milliseconds=1)
ACCESS_LOG_FORMAT = '%(t)s "%(m)s %(U)s" %(s)s %(B)s bytes %(M)s ms'


logger = logging.getLogger(__name__)


class QuietLogger(Logger):  # type: ignore[misc]
    """Logs no query strings and nothing that a client can shape into a line of its own."""

    def atoms(self, resp: Any, req: Any, environ: Mapping[str, Any], request_time: timedelta) -> dict[str, Any]:
        """What ACCESS_LOG_FORMAT names; gunicorn would put each header of every request into words as well."""
        return {
            "t": self.now(),
            "m": environ["REQUEST_METHOD"],
            # Decoded by gunicorn: a line break in the path would begin a new line of the log.
            "U": quote(environ.get("PATH_INFO") or ""),
            "s": str(resp.status).partition(" ")[0],
            "B": resp.sent,
            "M": request_time // MILLISECOND,
        }

    def exception(self, message: str, *args: Any, **options: Any) -> None:
        # The arguments hold the address with its query.
        super().exception(message.partition("%")[0], **options)


class WebServer(BaseApplication):  # type: ignore[misc]
    """Gunicorn's application; `bind` is host:port, or fd://N for a socket that listens already."""

    def __init__(self, bind: str) -> None:
        self._bind = bind
        super().__init__()

    def load_config(self) -> None:
        options = {
            "bind": self._bind,
            "workers": PROCESSES,
            "worker_class": "gthread",
            "threads": THREADS,
            "keepalive": 30,
            "graceful_timeout": GRACE_SECONDS,
            # Loaded once and shared by the forked processes: they start at once and use less memory.
            "preload_app": True,
            "control_socket_disable": True,
            "logger_class": QuietLogger,
            # Below this level gunicorn quotes what a broken request contained.
            "loglevel": "error",
            "accesslog": "-",
            "access_log_format": ACCESS_LOG_FORMAT,
            "post_worker_init": _write_recalls,
            "worker_exit": _write_last_recalls,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        tokens.warm()
        _load_embedding()
        # Else the first request of each process would load the API and the admin.
        import_module(settings.ROOT_URLCONF)
        application = get_internal_wsgi_application()
        _spare_the_collector()
        return application


def _write_recalls(worker: Any) -> None:
    """In the forked process: a thread does not come along with a fork."""
    worker.recalls = recalls.Flusher()
    worker.recalls.start()


def _write_last_recalls(_server: Any, worker: Any) -> None:
    worker.recalls.end()


def _spare_the_collector() -> None:
    """What is loaded stays, and the forked processes share it: nobody need look through it for garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_AT_ONCE)


def _load_embedding() -> None:
    """Once, for all processes to share: 120 MB of weights that are only read."""
    try:
        embeddings.warm()
    except EmbeddingError as error:
        logger.warning("Searches go by words alone: %s", error.detail)
