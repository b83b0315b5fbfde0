#!/bin/bash
# langgraph-checkpoint-sqlite==3.1.2 with langgraph-checkpoint==4.3.2, Python 3.11; no server is needed.
# LangGraph's store takes a time to live with each item: put(…, ttl=minutes). One expects that an item whose time is over is
# gone, as in Redis or a TTL index: get() gives None, search() leaves it out.
# Seen: nothing looks at the end when it reads. Until sweep_ttl() is called (a thread that start_ttl_sweeper() starts, and
# nobody else), get() and search() return what expired long ago. With refresh_on_read, by which a read counts as a use, get()
# sets the end anew, so an item that expired a month ago lives on for its whole time, and the sweep behind it finds nothing
# to delete. Whoever copies a store by reading it keeps everything that was to be forgotten.
# Output seen:
#   expired 30 days ago: search finds 1, get says 'The code is 4711'
#   after that get it ends in the future: True
#   the sweep deletes: 0
#   an expired item that nobody read, the sweep deletes: 1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: langgraph-checkpoint-sqlite==3.1.2 langgraph-checkpoint==4.3.2 2>/dev/null
cd "$folder"
cat > run.py <<'P'
from datetime import datetime, timedelta, timezone

from langgraph.store.sqlite import SqliteStore

WHO = ("memories", "mara")


def ends(store, key):
    (at,) = store.conn.execute("SELECT expires_at FROM store WHERE key = ?", (key,)).fetchone()
    found = datetime.fromisoformat(str(at))
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def past(store, *keys):
    """As if thirty days had gone by."""
    for key in keys:
        earlier = (ends(store, key) - timedelta(days=30)).isoformat()
        store.conn.execute("UPDATE store SET expires_at = ? WHERE key = ?", (earlier, key))


with SqliteStore.from_conn_string("store.db", ttl={"refresh_on_read": True}) as store:
    store.setup()
    store.put(WHO, "code", {"text": "The code is 4711"}, ttl=60)
    past(store, "code")
    now = datetime.now(timezone.utc)
    assert ends(store, "code") < now - timedelta(days=29)
    found, item = store.search(WHO, refresh_ttl=False), store.get(WHO, "code")
    print(f"expired 30 days ago: search finds {len(found)}, get says {item.value['text']!r}")
    print("after that get it ends in the future:", ends(store, "code") > now)
    print("the sweep deletes:", store.sweep_ttl())
    # Control: the same item, if nobody reads it.
    past(store, "code")
    print("an expired item that nobody read, the sweep deletes:", store.sweep_ttl())
P
venv/bin/python run.py 2>/dev/null | tee out
diff out - <<'O'
expired 30 days ago: search finds 1, get says 'The code is 4711'
after that get it ends in the future: True
the sweep deletes: 0
an expired item that nobody read, the sweep deletes: 1
O
