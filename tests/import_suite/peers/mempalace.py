"""Palaces of the backends that run without a service, mined by MemPalace's command from a folder; and a knowledge graph
with relations that hold, have ended and end some day."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER = Path(os.environ["SUITE_FOLDER"])


class Embedder(BaseHTTPRequestHandler):
    """`POST /v1/embeddings` without a model."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        rows = [
            {"index": at, "embedding": [float(1 + sum(map(ord, text)) % (place + 7)) for place in range(16)]}
            for at, text in enumerate(texts)
        ]
        body = json.dumps({"data": rows, "model": "letters"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Embedder)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ |= {
    "MEMPALACE_EMBEDDING_MODEL": "openai-compat",
    "MEMPALACE_EMBEDDING_API_URL": f"http://127.0.0.1:{server.server_port}",
    "MEMPALACE_EMBEDDING_API_MODEL": "letters",
    "TZ": "Asia/Shanghai",
    "NO_PROXY": "127.0.0.1",
}
notes = FOLDER / "notes"
for name, text in (
    ("garden.md", "Mara grows roses and beans behind the house. "),
    ("music.md", "She plays the cello. "),
    ("旅行.md", "她住在杭州，常去苏州。"),
):
    path = notes / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text * 20)
(notes / "mempalace.yaml").write_text("wing: notes\nrooms:\n- name: general\n  description: all\n")


def mine(backend):
    palace = FOLDER / backend
    program = [str(Path(sys.executable).with_name("mempalace")), "--palace", str(palace), "--backend", backend]
    subprocess.run([*program, "mine", str(notes)], check=True, capture_output=True, timeout=200)
    return palace


def counted(palace, query):
    name = "chroma.sqlite3" if (palace / "chroma.sqlite3").is_file() else "sqlite_exact.sqlite3"
    with sqlite3.connect(palace / name) as database:
        return database.execute(query).fetchone()[0]


CHROMA = """
    SELECT count(*) FROM embeddings e JOIN segments s ON e.segment_id = s.id JOIN collections c ON s.collection = c.id
    WHERE c.name = 'mempalace_drawers' AND s.scope = 'METADATA'
"""
EXACT = """
    SELECT count(*) FROM documents d JOIN collections c ON c.id = d.collection_id WHERE c.name = 'mempalace_drawers'
"""
runs = []
for backend, query in (("chroma", CHROMA), ("sqlite_exact", EXACT)):
    palace = mine(backend)
    count = counted(palace, query)
    assert count, backend
    runs.append(
        {
            "store": f"palace, {backend}",
            "given": str(palace),
            "options": ["--user", "mara"],
            "rows": count,
            "stored": count,
        }
    )

from mempalace.knowledge_graph import KnowledgeGraph

graph = KnowledgeGraph(db_path=str(FOLDER / "knowledge_graph.sqlite3"))
graph.add_triple("Mara", "lives_in", "Leiden", valid_from="2024-01-01")
graph.add_triple("Mara", "rents", "a boat", valid_from="2026-01-01", valid_to="2099-12-31")
graph.add_triple("Mara", "worked_at", "Acme", valid_from="2020-01-01", valid_to="2022-01-01")
graph.add_triple("Mara", "married_to", "Bo", valid_from="2020-01-01")
graph.invalidate("Mara", "married_to", "Bo", ended="2023-01-01")
runs.append(
    {
        "store": "knowledge graph",
        "given": str(FOLDER / "knowledge_graph.sqlite3"),
        "options": ["--user", "mara"],
        "rows": 4,
        "stored": 2,
        "left_out": {"no_longer_true": 2},
    }
)
json.dump({"runs": runs}, sys.stdout)
