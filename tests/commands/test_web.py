"""The web server's processes write the recalls that they noted."""

from types import SimpleNamespace

import pytest

from memories.management.hub_server import HubServer
from memories.pipeline.recalls import Flusher


def test_each_process_writes_its_recalls_until_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for verb in ("start", "end"):
        monkeypatch.setattr(Flusher, verb, lambda _, verb=verb: done.append(verb))
    server, worker = HubServer("127.0.0.1:0"), SimpleNamespace()
    server.cfg.post_worker_init(worker)
    assert done == ["start"]
    server.cfg.worker_exit(None, worker)
    assert done == ["start", "end"]
