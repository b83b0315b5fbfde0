#!/bin/bash
# psycopg[binary]==3.3.9, Python 3.11; no server is needed.
# psycopg takes a statement apart before it sends it (%(name)s becomes $1). How it reads is remembered, so one expects that a
# statement that is run again and again costs that once, whatever its size; and that one column more costs one fiftieth more.
# Seen: with 50 parameters it is remembered. With 51 nothing of it is: each execution takes the whole text apart again, in
# Python also in the binary build, which is several times as long. A text of more than 4,096 bytes does the same. Nothing is
# logged, no setting changes it, and a prepared statement does not help: this comes before. A table that got four columns
# cost each of our posts a tenth of a millisecond this way.
# Output seen:
#   50 parameters: taken apart 1 time in 1000 executions
#   51 parameters: taken apart 1000 times in 1000 executions
#   51 take at least 3 times as long as 50: True
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: 'psycopg[binary]==3.3.9' 2>/dev/null
cd "$folder"
cat > run.py <<'P'
import time

import psycopg
from psycopg import _queries
from psycopg.adapt import Transformer

RUNS = 1_000
assert psycopg.pq.__impl__ == "binary", psycopg.pq.__impl__


def taken_apart(count: int) -> tuple[int, float]:
    """How often so many executions took the statement apart, and the seconds of the quickest of five rounds."""
    names = [f"column_{at}" for at in range(count)]
    values = dict.fromkeys(names, 1)
    statement = f"INSERT INTO notes ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"
    times, rounds = [], []
    split = _queries._split_query

    def counted(*given: object) -> object:
        times.append(1)
        return split(*given)

    _queries._split_query = counted
    for at in range(RUNS):
        _queries.PostgresQuery(Transformer()).convert(statement, values)
    _queries._split_query = split
    for _ in range(5):
        began = time.process_time()
        for at in range(RUNS):
            _queries.PostgresQuery(Transformer()).convert(statement, values)
        rounds.append(time.process_time() - began)
    return len(times), min(rounds)


fifty, quick = taken_apart(50)
more, slow = taken_apart(51)
print(f"50 parameters: taken apart {fifty} time in {RUNS} executions")
print(f"51 parameters: taken apart {more} times in {RUNS} executions")
print("51 take at least 3 times as long as 50:", slow >= 3 * quick)
print(f"{quick * 1e3:.0f} {slow * 1e3:.0f} us each", file=__import__("sys").stderr)
assert (fifty, more) == (1, RUNS) and slow >= 3 * quick
P
venv/bin/python run.py | tee out
test "$(wc -l < out)" -eq 3
