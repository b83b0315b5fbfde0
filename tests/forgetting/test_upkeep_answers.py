"""Which items of an answer count, by tables; nothing here touches the database."""

import uuid
from typing import Any

from memories import conf
from memories.forgetting.upkeep_answers import UpkeepDecisions, judge
from memories.forgetting.upkeep_candidates import UpkeepFact
from memories.llm.prompts.fact_upkeep import FactUpkeep
from tests.each import each

# Numbers 1-3 are stale; 3-6 are of one group, 7 and 8 of another; 9 is shown for neither.
SHOWN = [
    UpkeepFact(uuid.uuid4(), 1, b"", number <= 3, {3: 1, 4: 1, 5: 1, 6: 1, 7: 2, 8: 2}.get(number, 0))
    for number in range(1, 10)
]


def rules(**own: Any) -> conf.Rules:
    return conf.Rules(**{**vars(conf.hub_rules()), **own})


def judged(stale: list[Any] | None = None, merged: list[Any] | None = None, **own: Any) -> UpkeepDecisions:
    return judge(FactUpkeep(stale=stale or [], merged=merged or []), SHOWN, rules(**own))


def removal(fact: Any = 1, reason: Any = "Over") -> dict[str, Any]:
    return {"fact": fact, "reason": reason}


def merge(*facts: Any, **over: Any) -> dict[str, Any]:
    return {"facts": list(facts), "content": "Says it all", "confidence": 0.8, "reason": "Same", **over}


def numbers(facts: Any) -> list[int]:
    return [SHOWN.index(fact) + 1 for fact in facts]


@each(
    ("items", "taken", "refused"),
    [
        ([removal(1), removal(3)], [1, 3], {}),
        ([removal(4)], [], {"unknown_fact": 1}),
        ([removal(9), removal(1)], [1], {"unknown_fact": 1}),
        ([removal(0), removal(-1), removal(10), removal(10**30)], [], {"unknown_fact": 4}),
        ([removal(1, reason=" \u200b ")], [], {"no_reason": 1}),
        ([removal(1), removal(1)], [1], {"repeated": 1}),
        ([removal("1"), removal(True), "x", None, removal(2)], [2], {"malformed": 4}),
        ([removal(1, reason=None)], [], {"malformed": 1}),
        ([removal(1), removal(2), removal(3)], [1, 2], {"too_many": 1}),
    ],
)
def test_removals(items: list[Any], taken: list[int], refused: dict[str, int]) -> None:
    found = judged(stale=items, stale_most=2)
    assert numbers(removal.shown for removal in found.removals) == taken
    assert +found.refused == refused


@each(
    ("items", "taken", "refused"),
    [
        ([merge(3, 4)], [[3, 4]], {}),
        ([merge(3, 4), merge(7, 8)], [[3, 4], [7, 8]], {}),
        ([merge(4)], [], {"too_few_facts": 1}),
        ([merge()], [], {"too_few_facts": 1}),
        ([merge(4, 4)], [], {"too_few_facts": 1}),
        # Never shown for it, they are ignored.
        ([merge(4, 5, 99, 9)], [[4, 5]], {"unknown_fact": 2}),
        ([merge(4, 99)], [], {"unknown_fact": 1, "too_few_facts": 1}),
        ([merge(4, 7)], [], {"mixed_facts": 1}),
        ([merge(3, 4), merge(4, 5, 6)], [[3, 4], [5, 6]], {"repeated": 1}),
        ([merge(3, 4), merge(4, 5)], [[3, 4]], {"repeated": 1, "too_few_facts": 1}),
        ([merge(3, 4, 5, 6)], [], {"too_many_facts": 1}),
        ([merge(3, 4, 5)], [[3, 4, 5]], {}),
        ([merge(3, 4, confidence=2), merge(3, 4, content=7), "x"], [], {"malformed": 3}),
    ],
)
def test_merges(items: list[Any], taken: list[list[int]], refused: dict[str, int]) -> None:
    found = judged(merged=items, merged_most=3)
    assert [numbers(merge.shown) for merge in found.merges] == taken
    assert +found.refused == refused


def test_what_is_named_stale_is_in_no_text() -> None:
    found = judged(stale=[removal(3)], merged=[merge(3, 4, 5), merge(4, 5)])
    assert numbers(found.removed) == [3]
    assert [numbers(merge.shown) for merge in found.merges] == [[4, 5]]
    assert +found.refused == {"both_stale_and_merged": 1}


def test_reasons_are_bounded_and_hold_no_secret() -> None:
    said = "Over: my password is hunter2xyz!\nReally"
    found = judged(stale=[removal(1, reason=said), removal(2, reason="x" * 900)])
    assert "hunter2xyz" not in found.removals[0].reason
    assert found.removals[0].reason.endswith("Really")
    assert "\n" not in found.removals[0].reason
    assert len(found.removals[1].reason) == 500
