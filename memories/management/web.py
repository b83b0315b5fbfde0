"""The web server: gunicorn with threads, configured for a small machine and for logs without people in them."""

import logging
import os
from importlib import import_module
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.core.servers.basehttp import get_internal_wsgi_application
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from memories.exceptions import EmbeddingError
from memories.llm import embeddings, tokens

# Requests wait for the database most of their time: threads for that, a second process for a second core.
# 4 × 8 threads hold at most 32 of the server's 100 connections.
PROCESSES = min(max(os.cpu_count() or 1, 2), 4)
THREADS = 8
GRACE_SECONDS = 8
ACCESS_LOG_FORMAT = '%(t)s "%(m)s %(U)s" %(s)s %(B)s bytes %(M)s ms'


logger = logging.getLogger(__name__)


class QuietLogger(Logger):  # type: ignore[misc]
    """Logs no query strings and nothing that a client can shape into a line of its own."""

    def atoms(self, *args: Any) -> dict[str, Any]:
        atoms: dict[str, Any] = super().atoms(*args)
        # Decoded by gunicorn: a line break in the path would begin a new line of the log.
        atoms["U"] = quote(atoms["U"] or "")
        return atoms

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
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        tokens.warm()
        _load_embedding()
        # Else the first request of each process would load the API and the admin.
        import_module(settings.ROOT_URLCONF)
        return get_internal_wsgi_application()


def _load_embedding() -> None:
    """Once, for all processes to share: 120 MB of weights that are only read."""
    try:
        embeddings.warm()
    except EmbeddingError as error:
        logger.warning("Searches go by words alone: %s", error.detail)
