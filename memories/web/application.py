"""The hub as gunicorn serves it: loaded once for all processes. Each process writes its recalls."""

import gc
import logging
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.servers.basehttp import get_internal_wsgi_application

from memories.exceptions import EmbeddingError
from memories.llm import embeddings, tokens
from memories.retrieval import recalls
from memories.web.connection import Limits
from memories.web.server import WebServer

# New objects between two garbage collections. With Python's 700 there are several in each request.
GARBAGE_AT_ONCE = 5_000

logger = logging.getLogger(__name__)


class HubServer(WebServer):
    def __init__(self, bind: str) -> None:
        super().__init__(bind, limits())

    def load_config(self) -> None:
        super().load_config()
        self.cfg.set("post_worker_init", _write_recalls)
        self.cfg.set("worker_exit", _write_last_recalls)

    def load(self) -> Any:
        tokens.warm()
        try:
            # 120 MB of weights that are only read: all processes share them.
            embeddings.warm()
        except EmbeddingError as error:
            logger.warning("Searches go by words alone: %s", error.detail)
        # Otherwise the first request of each process would load the API and the admin.
        import_module(settings.ROOT_URLCONF)
        application = get_internal_wsgi_application()
        # What is loaded now stays, and the forked processes share it: the collector need not look through it.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE_AT_ONCE)
        return application


def limits() -> Limits:
    """The limits of clients, by the settings."""
    return Limits(
        head_seconds=settings.MEMORYHUB_HEAD_SECONDS,
        body_seconds=settings.MEMORYHUB_BODY_SECONDS,
        idle_seconds=settings.MEMORYHUB_KEEPALIVE_SECONDS,
        unread_seconds=settings.MEMORYHUB_UNREAD_SECONDS,
        connections=settings.MEMORYHUB_CONNECTIONS,
    )


def _write_recalls(worker: Any) -> None:
    """Runs in the forked process, because a thread does not survive a fork."""
    worker.recalls = recalls.Flusher()
    worker.recalls.start()


def _write_last_recalls(_server: Any, worker: Any) -> None:
    worker.recalls.end()
