#!/bin/bash
# graphiti-core==0.31.2 with kuzu==0.11.3 and httpx==0.28.1, Python 3.11; no server and no model is needed.
# Graphiti keeps since when a fact holds (valid_at). One expects the same moment back that was saved, as its other drivers
# give it, or at least the same moment in UTC.
# Seen: its driver for Kuzu keeps the hours on the clock and drops the zone. 09:00+08:00 comes back as 09:00 without a zone,
# which every reader of Graphiti's own times takes for UTC: eight hours later than it was, and for times of the same moment in
# two zones two different times. So a fact that began after another one is read as older, and as_of a moment is wrong by the
# zone of whoever saved it. No warning is given; a time that is saved in UTC only loses its zone.
# Output seen:
#   saved 2026-02-03T09:00:00+08:00, read 2026-02-03T09:00:00
#   saved 2026-02-03T01:00:00+00:00, read 2026-02-03T01:00:00
#   the same moment, saved in two zones, is read as one: False
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: graphiti-core==0.31.2 kuzu==0.11.3 httpx==0.28.1 2>/dev/null
cd "$folder"
cat > run.py <<'P'
import asyncio
import os
import warnings
from datetime import datetime, timedelta, timezone

warnings.simplefilter("ignore")
os.environ |= {"GRAPHITI_TELEMETRY_ENABLED": "false", "OPENAI_API_KEY": "none"}
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import EntityNode


async def read_back(said):
    driver = KuzuDriver(db=":memory:")
    who, where = (EntityNode(name=name, group_id="u", name_embedding=[0.5] * 8) for name in ("Mara", "Leiden"))
    await who.save(driver)
    await where.save(driver)
    edge = EntityEdge(group_id="u", source_node_uuid=who.uuid, target_node_uuid=where.uuid, name="LIVES_IN",
                      fact="Mara lives in Leiden", created_at=said, valid_at=said, fact_embedding=[0.5] * 8, episodes=[])
    await edge.save(driver)
    return (await EntityEdge.get_by_uuid(driver, edge.uuid)).valid_at


here = datetime(2026, 2, 3, 9, 0, tzinfo=timezone(timedelta(hours=8)))
found = []
for said in (here, here.astimezone(timezone.utc)):
    found.append(asyncio.run(read_back(said)))
    print(f"saved {said.isoformat()}, read {found[-1].isoformat()}")
print("the same moment, saved in two zones, is read as one:", found[0] == found[1])
P
venv/bin/python run.py 2>/dev/null | tee out
diff out - <<'O'
saved 2026-02-03T09:00:00+08:00, read 2026-02-03T09:00:00
saved 2026-02-03T01:00:00+00:00, read 2026-02-03T01:00:00
the same moment, saved in two zones, is read as one: False
O
