"""Ports on loopback for servers that a test starts."""

import random
import socket

# Below those that the system gives away by itself: none of the many connections of tests takes one meanwhile.
PORTS = range(20_000, 30_000)


def free_port() -> int:
    """One that nobody uses."""
    while True:
        port = random.choice(PORTS)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
