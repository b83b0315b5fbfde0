"""What all peers share: the rows and vectors that everybody is given, and a minimal HTTP view of a peer's library.

It runs in the environment of the peer, with the standard library alone. A peer's script hands its class to run():
`setup` makes its tables, `load` gives it all rows in bulk and prints what that took, `serve` answers requests.
"""

import array
import asyncio
import json
import mmap
import os
import re
import shlex
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

FOLDER, GROUND = Path(os.environ["COMPARE_FOLDER"]), Path(os.environ["COMPARE_GROUND"])
DSN = os.environ["COMPARE_DSN"]
DIMENSIONS = int(os.environ["COMPARE_DIMENSIONS"])
FILL_SECONDS = float(os.environ["COMPARE_FILL_SECONDS"])
_BYTES = 4 * DIMENSIONS
_NUMBERED = re.compile(r"\(\d+\)$")
# A peer may take the process's own output for itself.
_TOLD = os.fdopen(os.dup(1), "w")


class Vectors:
    """The vector of a text: one that the command embedded, that of the row whose number stands at the text's end in
    brackets, or for a part of a text that a peer has cut that of the whole. White space does not count: peers change
    it before they embed."""

    def __init__(self):
        self.rows, self.known = _mapped("rows.f32"), _mapped("known.f32")
        self.count = len(self.rows) // _BYTES
        known = json.loads((GROUND / "known.json").read_text("utf-8"))
        self.places = {_in_one_line(text): place for place, text in enumerate(known)}

    def of(self, text):
        text = _in_one_line(text)
        place = self.places.get(text)
        if place is None and _NUMBERED.search(text):
            return self.row(number(text) % self.count)
        if place is None:
            place = next((place for whole, place in self.places.items() if text in whole), None)
        if place is None:
            raise LookupError(f"No text of this run has {text[:60]!r} in it, so there is no vector of it.")
        return _floats(self.known, place).tolist()

    def row(self, place):
        return _floats(self.rows, place).tolist()

    def sent(self, place):
        """That of a row as pgvector's vector_recv() reads it: two shorts (dimensions, 0), then the floats."""
        floats = _floats(self.rows, place)
        floats.byteswap()
        return DIMENSIONS.to_bytes(2, "big") + b"\0\0" + floats.tobytes()


class Loop:
    """One event loop for a library that wants no other: the threads of the view hand over to it."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, asked):
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()


def dsn_as_url(scheme="postgresql"):
    """The address of its database as libraries want it that take no other form."""
    given = dict(one.split("=", 1) for one in shlex.split(DSN))
    who = f"{quote(given['user'])}:{quote(given['password'])}"
    return f"{scheme}://{who}@/{quote(given['dbname'])}?host={quote(given['host'], safe='')}&port={given['port']}"


def _in_one_line(text):
    return " ".join(text.split())


def number(text):
    return int(text[text.rindex("(") + 1 : -1])


def rows():
    """Person and text of each row, in the order of their numbers."""
    with (GROUND / "rows.jsonl").open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def rows_in_time():
    """As rows(), as long as there is time: for a peer that may be too slow for all of them."""
    global _taken
    deadline = time.monotonic() + FILL_SECONDS
    for _taken, row in enumerate(rows(), start=1):
        yield row
        if time.monotonic() > deadline:
            return


# How many rows a peer had time for; None: it took all.
_taken = None


def built_afterwards(connection, table, fill):
    """Fill a table without its indexes of vectors and words, then make these by their own statements. Their seconds."""
    asked = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s AND indexdef ~ 'USING (hnsw|ivfflat|gin)'"
    found = [tuple(one.values()) if isinstance(one, dict) else one for one in connection.execute(asked, [table])]
    for name, _ in found:
        connection.execute(f'DROP INDEX "{name}"')
    fill()
    began = time.monotonic()
    connection.execute("SET maintenance_work_mem = '1GB'")
    for _, statement in found:
        connection.execute(statement)
    seconds = time.monotonic() - began
    connection.execute(f'VACUUM ANALYZE "{table}"')
    return seconds


def run(kind):
    """What the command line asks of the peer's class."""
    if sys.argv[1] == "serve":
        _serve(kind, int(sys.argv[2]), processes=int(sys.argv[3]))
        return
    product = kind()
    if sys.argv[1] == "setup":
        product.setup()
    else:
        json.dump({"index_seconds": product.load(), "rows": _taken}, _TOLD)
        _TOLD.flush()
    product.close()


def _serve(kind, port, *, processes):
    server = ThreadingHTTPServer(("127.0.0.1", port), _View)
    # All processes wait for the same connections, and one of them gets each.
    server.socket.setblocking(False)
    for _ in range(processes - 1):
        if not os.fork():
            break
    _View.product = kind()
    server.serve_forever(poll_interval=5)


class _View(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    product = None

    def do_GET(self):
        self._answer({"ready": True})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            self._answer(_OPERATIONS[self.path](self.product, body))
        except Exception as error:  # noqa: BLE001
            self._answer({"error": f"{type(error).__name__}: {error}"[:500]}, status=500)

    def _answer(self, found, status=200):
        content = json.dumps(found, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def _search(product, body):
    found = product.search(body["user_id"], body["query"], body["limit"])
    return {"results": [{"text": text, "score": score} for text, score in found]}


def _add(product, body):
    product.add(body["user_id"], body["text"], body["key"])
    return {"added": True}


def _delete(product, body):
    product.delete(body["user_id"])
    return {"deleted": True}


def _texts(product, body):
    return {"texts": product.texts(body["user_id"])}


def _inside(product, body):
    """Searches by threads of this process, as an application makes them: milliseconds of each, and seconds of all."""
    gate = threading.Barrier(len(body["scripts"]))
    times = []

    def ask(questions):
        gate.wait()
        for question in questions:
            began = time.perf_counter()
            product.search(body["user_id"], question, body["limit"])
            times.append((began, time.perf_counter()))

    threads = [threading.Thread(target=ask, args=[questions]) for questions in body["scripts"]]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    seconds = max(end for _, end in times) - min(begin for begin, _ in times)
    return {"milliseconds": [(end - begin) * 1e3 for begin, end in times], "seconds": seconds}


_OPERATIONS = {"/search": _search, "/add": _add, "/delete": _delete, "/texts": _texts, "/inside": _inside}


def _mapped(name):
    with (GROUND / name).open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _floats(mapped, place):
    found = array.array("f")
    found.frombytes(mapped[place * _BYTES : (place + 1) * _BYTES])
    return found
