"""`manage.py up` runs the whole hub, survives the death of its parts, and leaves nothing behind."""

import http.client
import json
import os
import signal
import socket

import psycopg

from memoryhub import embedded_postgres
from tests.commands.hub import RUNNING, Hub, wait_until


def status(hub: Hub, path: str) -> int:
    client = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=10)
    try:
        client.request("GET", path)
        return client.getresponse().status
    finally:
        client.close()


def test_what_it_prints_works(hub: Hub) -> None:
    process = hub.run("up")
    hub.wait_for(RUNNING)
    demo = json.loads((hub.home / "demo.json").read_text())
    assert f"http://127.0.0.1:{hub.port}/admin/" in hub.text
    assert f"{demo['username']} / {demo['password']}" in hub.text
    assert demo["api_key"] in hub.text
    assert "No language model configured" in hub.text
    assert "<memory>" in hub.paste_curl()["memory"]
    wait_until(lambda: status(hub, "/readyz") == 200)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 0
    assert hub.is_gone()


def test_a_configured_model_is_not_called_missing(hub: Hub) -> None:
    process = hub.run("up", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    hub.wait_for(RUNNING)
    assert "No language model configured" not in hub.text
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 0
    assert hub.is_gone()


def test_the_access_log_holds_no_query_and_no_line_of_a_stranger(hub: Hub) -> None:
    hub.run("up")
    hub.wait_for(RUNNING)
    status(hub, "/api/v1/facts?user_id=wei.lin")
    status(hub, "/healthz%0Aforged")
    hub.wait_for('"GET /healthz%0Aforged"')
    hub.wait_for('"GET /api/v1/facts"')
    assert "wei.lin" not in hub.text


def test_parts_that_die_are_started_again(hub: Hub) -> None:
    hub.run("up")
    hub.wait_for(RUNNING)
    for child in ("worker", "web"):
        before = hub.pid(child)
        os.kill(before, signal.SIGKILL)
        hub.wait_for(f"{child} ended with signal 9")
        hub.wait_for(f"{child} started", times=2)
        assert hub.pid(child) != before
    assert status(hub, "/healthz") == 200
    wait_until(lambda: status(hub, "/readyz") == 200)


def test_the_database_is_started_again(hub: Hub) -> None:
    hub.run("up")
    hub.wait_for(RUNNING)
    wait_until(lambda: status(hub, "/readyz") == 200)
    where = embedded_postgres.folder(hub.home)
    os.kill(int((where / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
    wait_until(lambda: status(hub, "/readyz") == 503)
    wait_until(lambda: status(hub, "/readyz") == 200)


def test_killed_its_children_go_and_the_next_start_has_everything(hub: Hub) -> None:
    process = hub.run("up")
    hub.wait_for(RUNNING)
    with psycopg.connect(**embedded_postgres.connection(hub.home)) as connection:
        connection.execute("CREATE TABLE kept AS SELECT '记住' AS word")
    process.kill()
    process.wait()
    wait_until(hub.is_gone)
    hub.run("up")
    hub.wait_for(RUNNING)
    with psycopg.connect(**embedded_postgres.connection(hub.home)) as connection:
        assert connection.execute("SELECT word FROM kept").fetchall() == [("记住",)]
        connection.execute("DROP TABLE kept")


def test_a_port_in_use_ends_it_before_anything_starts(hub: Hub) -> None:
    with socket.create_server(("127.0.0.1", hub.port)):
        process = hub.run("up")
        assert process.wait(timeout=20) == 2
    assert f"Port {hub.port} is in use" in hub.text
    assert "MEMORYHUB_PORT" in hub.text
    assert "Preparing" not in hub.text


def test_a_database_that_does_not_answer_is_named(hub: Hub) -> None:
    process = hub.run("up", DATABASE_URL="postgresql://nobody@127.0.0.1:9/nothing")
    assert process.wait(timeout=20) == 1
    assert "The database cannot be used" in hub.text
    assert "Traceback" not in hub.text
