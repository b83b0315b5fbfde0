"""The wheel, installed where there is no checkout: it starts the hub of an older version, with what that remembers, and
has its pages, styles and translations."""

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from psycopg.conninfo import make_conninfo

from memoryhub import embedded_postgres
from tests.commands.hub import RUNNING, Hub, wait_until
from tests.commands.test_restore_of_old import OLD
from tests.scratch import connect, scratch_folder

# The key of that hub's demo, as if it had been written down then: its row has the hash of this secret.
KEY = "mh_dl5ygdte3t_written-down-in-time"


@pytest.fixture(scope="module")
def installed() -> Iterator[Hub]:
    """A running hub of the wheel in the home of an older one. Dependencies are those of this environment, which has no
    hub installed."""
    folder = scratch_folder()
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, "."], cwd=settings.BASE_DIR, check=True)
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    subprocess.run(
        [*pip, "--python", environment / "bin/python", "install", "--no-deps", *folder.glob("*.whl")], check=True
    )
    packages = environment / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    hub = Hub(folder / "home", program=[str(environment / "bin/memoryhub")])
    fill_as_before(hub.home)
    try:
        hub.run("up")
        hub.wait_for(RUNNING)
        yield hub
    finally:
        hub.end()
        shutil.rmtree(folder)


def test_the_clients_wheel_leaves_nothing_where_it_is_built() -> None:
    folder = scratch_folder()
    checkout = shutil.copytree(
        settings.BASE_DIR / "clients/python", folder / "checkout", ignore=shutil.ignore_patterns(".*", "__pycache__")
    )
    before = sorted(checkout.rglob("*"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, checkout], check=True)
    assert sorted(checkout.rglob("*")) == before
    [wheel] = folder.glob("memoryhub_client-*.whl")
    with zipfile.ZipFile(wheel) as built:
        names = {Path(name) for name in built.namelist() if ".dist-info/" not in name}
    sources = checkout / "src"
    assert names == {path.relative_to(sources) for path in sources.rglob("*") if path.is_file()}
    shutil.rmtree(folder)


def fill_as_before(home: Path) -> None:
    """Put into the home what a hub with 35 migrations left there: tables and rows as that version made them."""
    backup = home.parent / "old.backup"
    backup.write_bytes(lzma.decompress(OLD.read_bytes()))
    with embedded_postgres.attached(home):
        given = embedded_postgres.connection(home)
        environment = {**embedded_postgres.ENVIRONMENT, "PGPASSWORD": given.pop("password")}
        program = embedded_postgres.client_program("pg_restore")
        options = ("--no-owner", "--no-privileges", "--no-comments", "--exit-on-error")
        subprocess.run([program, *options, f"--dbname={make_conninfo(**given)}", backup], env=environment, check=True)
        with connect(home) as database:
            key = {"secret": KEY, "prefix": KEY.split("_")[1]}
            changed = "UPDATE memories_apikey SET digest = sha256(%(secret)s::bytea) WHERE prefix = %(prefix)s"
            assert database.execute(changed, key).rowcount == 1
            [lacking] = database.execute("SELECT to_regclass('memories_backup') IS NULL").fetchall()
            assert lacking == (True,)


def get(hub: Hub, path: str, **headers: str) -> str:
    given = {"Accept-Language": "zh-hans", **headers}
    request = urllib.request.Request(f"http://127.0.0.1:{hub.port}{path}", headers=given)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        return str(answer.read().decode())


def test_pages_have_their_styles_and_languages(installed: Hub) -> None:
    page = get(installed, "/admin/login/")
    assert "登录" in page
    own = [path for path in re.findall(r'(?:href|src)="(/static/[^"]+)"', page) if "memor" in path]
    assert own
    assert all(get(installed, path) for path in own)


def test_the_hub_of_before_goes_on(installed: Hub) -> None:
    """Its key opens what it remembered, word for word, and all that is stored is sound."""
    answer = json.loads(get(installed, "/api/v1/facts?user_id=lin-wei&page_size=100", Authorization=f"Bearer {KEY}"))
    served = {fact["content"] for fact in answer["results"]}
    assert {"Works as a data engineer at a logistics company", "住在杭州西湖区,2024 年从上海搬来"} <= served
    with connect(installed.home) as database:
        kept = database.execute("SELECT content FROM memories_fact WHERE status = 'active'").fetchall()
    assert served == {content for [content] in kept}
    assert "invariants hold." in done(installed, "check_memory")


def test_the_doctor_finds_it_well(installed: Hub) -> None:
    wait_until(lambda: is_ready(installed))
    assert f"ok     port: a hub answers on {installed.port} and is ready" in done(installed, "doctor")


def done(hub: Hub, command: str) -> str:
    environ = {"MEMORYHUB_HOME": str(hub.home), "MEMORYHUB_PORT": str(hub.port)}
    environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"
    ran = subprocess.run(
        [*hub.program, command], env={**os.environ, **environ}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def is_ready(hub: Hub) -> bool:
    try:
        return bool(get(hub, "/readyz"))
    except urllib.error.HTTPError:
        return False
