"""The web server: gunicorn with threads, configured for a small machine and for logs without people in them."""

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from time import monotonic
from typing import Any
from urllib.parse import quote

from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from gunicorn.http import Request, RequestParser

from memories.api.masks import masked

# Requests wait for the database most of their time: threads for that, a second process for a second core.
# 4 × 8 threads hold at most 32 of the server's 100 connections.
PROCESSES = min(max(os.cpu_count() or 1, 2), 4)
THREADS = 8
GRACE_SECONDS = 8
MILLISECOND = timedelta(milliseconds=1)
# Two ids of 255 characters that are percent-encoded are longer than gunicorn's default; this is the most it takes.
LONGEST_REQUEST_LINE = 8190
BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
# Of a body that nobody read so much is thrown away, in so much time.
MOST_DRAINED_BYTES = 64 * 1024 * 1024
DRAIN_SECONDS = 5.0
ACCESS_LOG_FORMAT = '%(t)s "%(m)s %(U)s" %(s)s %(B)s bytes %(M)s ms'


class QuietLogger(Logger):  # type: ignore[misc]
    """Logs no query strings and nothing that a client can shape into a line of its own."""

    def atoms(self, resp: Any, req: Any, environ: Mapping[str, Any], request_time: timedelta) -> dict[str, Any]:
        """What ACCESS_LOG_FORMAT names; gunicorn would put each header of every request into words as well."""
        return {
            "t": self.now(),
            "m": environ["REQUEST_METHOD"],
            # Decoded by gunicorn: a line break in the path would begin a new line of the log.
            "U": quote(masked(environ.get("PATH_INFO") or "")),
            "s": str(resp.status).partition(" ")[0],
            "B": resp.sent,
            "M": request_time // MILLISECOND,
        }

    def exception(self, message: str, *args: Any, **options: Any) -> None:
        # The arguments hold the address with its query.
        super().exception(message.partition("%")[0], **options)


class PlainRequest(Request):  # type: ignore[misc]
    """An address may have letters that are not percent-encoded: curl sends `?user_id=张三` as it was typed."""

    def parse_request_line(self, line_bytes: bytes) -> None:
        method, blank, rest = bytes(line_bytes).partition(b" ")
        encoded = BEYOND_ASCII.sub(lambda found: b"%%%02X" % found[0][0], rest)
        super().parse_request_line(method + blank + encoded)


class WebServer(BaseApplication):  # type: ignore[misc]
    """Gunicorn as the hub is served by it; `bind` is host:port, or fd://N for a socket that listens already."""

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
            "limit_request_line": LONGEST_REQUEST_LINE,
            "graceful_timeout": GRACE_SECONDS,
            # Loaded once and shared by the forked processes: they start at once and use less memory.
            "preload_app": True,
            "control_socket_disable": True,
            "logger_class": QuietLogger,
            # Below this level gunicorn quotes what a broken request contained.
            "loglevel": "error",
            "accesslog": "-",
            "access_log_format": ACCESS_LOG_FORMAT,
            "post_request": drain,
        }
        for name, value in options.items():
            self.cfg.set(name, value)
        # There is no setting for it.
        RequestParser.mesg_class = PlainRequest


def drain(_worker: Any, request: Any, *_: Any) -> None:
    """Take the rest of a body that was refused unread (gunicorn's hook after an answer).

    Closed with it unread, the connection would be reset: whoever sends all before they read never sees the answer.
    """
    left = getattr(request.body.reader, "length", 0)
    if not left:
        return
    held = request.unreader.take_buffered()
    # The next request may have come along.
    request.unreader.unread(held[left:])
    left -= len(held[:left])
    if left <= MOST_DRAINED_BYTES:
        left -= _thrown_away(request.unreader.sock, left)
    request.body.reader.length = 0
    # Then where the next request begins is not known, and the connection ends.
    request.body.failed |= left > 0


def _thrown_away(sock: Any, size: int) -> int:
    """How many of the next `size` bytes came in time."""
    found, before, end = 0, sock.gettimeout(), monotonic() + DRAIN_SECONDS
    try:
        while found < size and (patience := end - monotonic()) > 0:
            sock.settimeout(patience)
            part = len(sock.recv(min(size - found, 65_536)))
            if not part:
                break
            found += part
        sock.settimeout(before)
    except OSError:
        return found
    return found
