"""What a search's `filter` selects, as a condition in SQL: its parameters are values, never parts of the statement.

`{"status": "open"}` is equality; `{"score": {"$gt": 3}}` compares; `{"author": {"name": "Ann"}}` looks inside. A field
that is missing is null. Numbers are compared with numbers and texts with texts; nothing else is greater or less.
"""

import json
from typing import Any

MOST_CONDITIONS = 100
EQUAL = {"$eq": "=", "$ne": "<>"}
ORDERED = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


class BadFilter(ValueError):
    """A filter that cannot be read; the message says why, `path` where."""

    def __init__(self, detail: str, path: tuple[str, ...]) -> None:
        super().__init__(detail)
        self.path = path


def condition(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """SQL about the row `i`, and its parameters; both for the whole filter. Errors: BadFilter."""
    found = _Conditions()
    for key, wanted in given.items():
        found.add((key,), wanted)
    return " AND ".join(found.sql) or "true", found.parameters


class _Conditions:
    def __init__(self) -> None:
        self.sql: list[str] = []
        self.parameters: dict[str, Any] = {}

    def add(self, path: tuple[str, ...], wanted: Any) -> None:
        if not isinstance(wanted, dict):
            self._equal(path, "=", wanted)
        elif any(name.startswith("$") for name in wanted):
            for name, operand in wanted.items():
                self._compare(path, name, operand)
        elif wanted:
            for name, inner in wanted.items():
                self.add((*path, name), inner)
        else:
            self._add(path, "jsonb_typeof({value}) = 'object'")

    def _compare(self, path: tuple[str, ...], name: str, operand: Any) -> None:
        if name in EQUAL:
            self._equal(path, EQUAL[name], operand)
        elif name not in ORDERED:
            raise BadFilter(f"Unsupported operator: {name}", path)
        elif isinstance(operand, str):
            # Evaluated only where the type is right: CASE keeps the order.
            self._ordered(
                path, "string", f"{{value}} #>> '{{{{}}}}' {ORDERED[name]} {{operand}} COLLATE \"C\"", operand
            )
        elif isinstance(operand, int | float) and not isinstance(operand, bool):
            self._ordered(path, "number", f"({{value}})::numeric {ORDERED[name]} {{operand}}::numeric", operand)
        else:
            raise BadFilter(f"{name} compares with a number or a text.", path)

    def _equal(self, path: tuple[str, ...], operator: str, wanted: Any) -> None:
        sql = f"coalesce({{value}}, 'null'::jsonb) {operator} {{operand}}::jsonb"
        self._add(path, sql, json.dumps(wanted, ensure_ascii=False))

    def _ordered(self, path: tuple[str, ...], kind: str, sql: str, operand: Any) -> None:
        self._add(path, f"CASE WHEN jsonb_typeof({{value}}) = '{kind}' THEN {sql} ELSE false END", operand)

    def _add(self, path: tuple[str, ...], sql: str, operand: Any = None) -> None:
        if len(self.sql) == MOST_CONDITIONS:
            raise BadFilter(f"A filter can have {MOST_CONDITIONS} conditions.", path)
        at = len(self.sql)
        self.parameters |= {f"path_{at}": list(path), f"operand_{at}": operand}
        self.sql.append(sql.format(value=f"(i.value #> %(path_{at})s::text[])", operand=f"%(operand_{at})s"))
