"""The hub as gunicorn serves it: loaded once for all processes. Each process writes its recalls, and which contexts it
served."""

import gc
import logging
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.servers.basehttp import get_internal_wsgi_application
from django.urls import reverse

from memories.context import log
from memories.curation.imports import verbs
from memories.gateway.gateway import Gateway
from memories.llm import embeddings, tokens
from memories.mcp_server.mounted import MemoryServer
from memories.retrieval import recalls
from memories.text.injection import detection
from memories.web.connection import ConnectionLimits
from memories.web.server import WebServer

# Where files are uploaded to be imported.
UPLOADS = frozenset({"/api/v1/imports", "/admin/memories/import/add/"})

logger = logging.getLogger(__name__)


class HubServer(WebServer):
    beside = (Gateway, MemoryServer)

    @staticmethod
    def upload_bytes(method: str, path: str) -> int:
        # With what a form has beside the file.
        return verbs.most_bytes() + (1 << 20) if method == "POST" and path in UPLOADS else 0

    def __init__(self, bind: str) -> None:
        super().__init__(bind, limits(), wait_seconds=settings.MEMORYHUB_WAIT_SECONDS)

    def load_config(self) -> None:
        super().load_config()
        self.cfg.set("post_worker_init", _start_writers)
        self.cfg.set("worker_exit", _end_writers)

    def load(self) -> Any:
        tokens.preload()
        detection.preload()
        # 120 MB of weights that are only read: all processes share them.
        for error in embeddings.warm_needed():
            logger.warning("Searches go by words alone: %s", error.detail)
        # Otherwise the first request of each process would load the API and the admin, and fill the table of addresses;
        # and the first that makes an index a part of NumPy that takes 18 MB.
        reverse("admin:index")
        import_module("numpy.ma")
        application = get_internal_wsgi_application()
        # What is loaded now stays, and the forked processes share it: the collector need not look through it.
        gc.collect()
        gc.freeze()
        return application


def limits() -> ConnectionLimits:
    """The limits of clients, by the settings."""
    return ConnectionLimits(
        head_seconds=settings.MEMORYHUB_HEAD_SECONDS,
        body_seconds=settings.MEMORYHUB_BODY_SECONDS,
        idle_seconds=settings.MEMORYHUB_KEEPALIVE_SECONDS,
        unread_seconds=settings.MEMORYHUB_UNREAD_SECONDS,
        connections=settings.MEMORYHUB_CONNECTIONS,
    )


def _start_writers(worker: Any) -> None:
    """Runs in the forked process, because threads do not survive a fork."""
    worker.writers = [recalls.RecallWriter(), log.LogWriter()]
    for writer in worker.writers:
        writer.start()


def _end_writers(_server: Any, worker: Any) -> None:
    for writer in worker.writers:
        writer.end()
