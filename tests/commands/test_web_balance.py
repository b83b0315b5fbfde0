"""A new connection goes to the process that has fewest, and to any when that one hangs."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from memories.web.connection import ConnectionLimits, Process
from memories.web.worker import MOST_YIELDS, ConnectionCount, CountedConnections, LoopWorker


@pytest.fixture
def counts() -> Iterator[tuple[ConnectionCount, ConnectionCount]]:
    pair = ConnectionCount(), ConnectionCount()
    yield pair
    for count in pair:
        count.free()


def test_who_has_more_than_another_knows_it(counts: tuple[ConnectionCount, ConnectionCount]) -> None:
    one, other = (CountedConnections(count) for count in counts)
    assert not counts[0].has_more_than_another()
    one.add("a")
    one.add("a")
    assert [count.has_more_than_another() for count in counts] == [True, False]
    other.add("b")
    assert [count.has_more_than_another() for count in counts] == [False, False]
    other.add("c")
    other.discard("b")
    one.discard("a")
    assert [count.has_more_than_another() for count in counts] == [False, True]


def test_a_process_that_ended_is_not_waited_for(counts: tuple[ConnectionCount, ConnectionCount]) -> None:
    CountedConnections(counts[0]).add("a")
    assert counts[0].has_more_than_another()
    counts[1].free()
    assert not counts[0].has_more_than_another()
    # Its count is the next one's.
    again = ConnectionCount()
    assert counts[0].has_more_than_another()
    again.free()


def test_it_yields_so_many_times_and_then_accepts(counts: tuple[ConnectionCount, ConnectionCount]) -> None:
    worker: Any = object.__new__(LoopWorker)
    worker.connection_count, worker._yields, worker.alive = counts[0], 0, True
    worker._process = Process(config=None, limits=ConnectionLimits(), log=lambda *_: None)  # type: ignore[arg-type]
    taken: list[socket.socket] = []

    async def take(client: socket.socket) -> None:
        taken.append(client)

    async def accept_until_taken(listener: socket.socket) -> int:
        worker.loop = asyncio.get_running_loop()
        asked = 0
        while not taken:
            worker._accept(listener)
            asked += 1
            await asyncio.sleep(0)
        worker.loop.remove_reader(listener.fileno())
        return asked

    worker._take = take
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        for held, expected in ((0, 1), (2, 1 + MOST_YIELDS)):
            counts[0].set(held)
            with socket.create_connection(listener.getsockname()):
                assert asyncio.run(accept_until_taken(listener)) == expected
            taken.pop().close()
