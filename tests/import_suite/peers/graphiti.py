"""Edges of Graphiti in Kuzu, of two people: one that holds, one that ends some day, two that are over."""

import asyncio
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

os.environ |= {"GRAPHITI_TELEMETRY_ENABLED": "false", "OPENAI_API_KEY": "none"}
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.edges import EntityEdge
from graphiti_core.nodes import EntityNode

FOLDER = Path(os.environ["SUITE_FOLDER"])


def day(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def main():
    driver = KuzuDriver(db=str(FOLDER / "graph.kuzu"))
    for who in ("mara", "bo"):
        names = ["User", "Leiden", "Acme", "a boat"]
        nodes = [EntityNode(name=name, group_id=who, name_embedding=[0.5] * 8) for name in names]
        for node in nodes:
            await node.save(driver)
        facts = [
            ("Lives in Leiden", 1, {"valid_at": day("2024-01-01")}),
            ("Worked at Acme", 2, {"valid_at": day("2020-01-01"), "invalid_at": day("2022-01-01")}),
            ("Rents a boat", 3, {"valid_at": day("2026-01-01"), "invalid_at": day("2099-01-01")}),
            ("Owned a boat", 3, {"expired_at": day("2025-01-01")}),
        ]
        for fact, to, when in facts:
            await EntityEdge(
                group_id=who,
                source_node_uuid=nodes[0].uuid,
                target_node_uuid=nodes[to].uuid,
                name="HAS",
                fact=fact,
                created_at=day("2026-02-03"),
                fact_embedding=[0.5] * 8,
                episodes=[],
                **when,
            ).save(driver)
    edges = [edge for who in ("mara", "bo") for edge in await EntityEdge.get_by_group_ids(driver, [who])]
    (FOLDER / "edges.json").write_text(json.dumps([edge.model_dump(mode="json") for edge in edges]))
    assert len(edges) == 8
    return {
        "runs": [
            {
                "store": "edges of Kuzu as JSON",
                "given": str(FOLDER / "edges.json"),
                "rows": 8,
                "stored": 4,
                "left_out": {"expired": 2, "no_longer_true": 2},
            }
        ]
    }


json.dump(asyncio.run(main()), sys.stdout)
