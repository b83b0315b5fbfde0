"""What is counted of one ranked answer, and the means over many; questions without reachable gold are left out."""

import math
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

CUTS = (1, 5, 10)
Row = dict[str, float]


def of_ranking(found: Sequence[str], gold: AbstractSet[str]) -> Row:
    """hit@k: any gold among the first k; R@k: the share of it; recall_all@k: all of it; nDCG@10 with binary gain."""
    ranks = [rank for rank, one in enumerate(found) if one in gold]
    row: Row = {}
    for cut in CUTS:
        inside = sum(rank < cut for rank in ranks)
        row |= {f"hit@{cut}": float(inside > 0), f"R@{cut}": inside / len(gold)}
        row[f"recall_all@{cut}"] = float(inside == len(gold))
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(len(gold), 10)))
    row["nDCG@10"] = sum(1 / math.log2(rank + 2) for rank in ranks if rank < 10) / ideal
    return row


def mean(rows: Sequence[Row]) -> Row:
    """The mean of each figure, to three places; {} of none."""
    return {key: round(sum(row[key] for row in rows) / len(rows), 3) for key in (rows[0] if rows else {})}


def by_category(rows: Iterable[tuple[str, Row]]) -> dict[str, Row]:
    """The means of each category, and `all`; `n` is the number of questions."""
    groups: dict[str, list[Row]] = {"all": []}
    for category, row in rows:
        groups["all"].append(row)
        groups.setdefault(category, []).append(row)
    return {
        name: {"n": float(len(groups[name])), **mean(groups[name])} for name in ("all", *sorted(set(groups) - {"all"}))
    }


def table(figures: dict[str, Row]) -> str:
    """Lines of one set, the categories below each other."""
    columns = list(figures["all"])
    lines = [" " * 26 + " ".join(f"{name:>13}" for name in columns)]
    lines += [f"{name:<26}" + " ".join(f"{row.get(key, 0):>13g}" for key in columns) for name, row in figures.items()]
    return "\n".join(lines)
