"""The hub as gunicorn serves it: loaded once for all processes, with the writing of recalls in each."""

import gc
import logging
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.servers.basehttp import get_internal_wsgi_application

from memories.exceptions import EmbeddingError
from memories.llm import embeddings, tokens
from memories.management.web import WebServer
from memories.pipeline import recalls

# New objects between two looks for garbage; at Python's 700 several fall into each request.
GARBAGE_AT_ONCE = 5_000

logger = logging.getLogger(__name__)


class HubServer(WebServer):
    def load_config(self) -> None:
        super().load_config()
        self.cfg.set("post_worker_init", _write_recalls)
        self.cfg.set("worker_exit", _write_last_recalls)

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
