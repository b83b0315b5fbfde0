"""The wheel, installed where there is no checkout: it starts a hub, with its pages, styles and translations."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from tests.commands.hub import RUNNING, Hub, wait_until
from tests.scratch import scratch_folder


@pytest.fixture(scope="module")
def installed() -> Iterator[Hub]:
    """A running hub of the wheel. Its dependencies are those of this environment, which has no hub installed."""
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
    try:
        hub.run("up")
        hub.wait_for(RUNNING)
        yield hub
    finally:
        hub.end()
        shutil.rmtree(folder)


def get(hub: Hub, path: str) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{hub.port}{path}", headers={"Accept-Language": "zh-hans"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        return str(answer.read().decode())


def test_pages_have_their_styles_and_languages(installed: Hub) -> None:
    page = get(installed, "/admin/login/")
    assert "登录" in page
    own = [path for path in re.findall(r'(?:href|src)="(/static/[^"]+)"', page) if "memor" in path]
    assert own
    assert all(get(installed, path) for path in own)


def test_the_doctor_finds_it_well(installed: Hub) -> None:
    wait_until(lambda: is_ready(installed))
    environ = {"MEMORYHUB_HOME": str(installed.home), "MEMORYHUB_PORT": str(installed.port)}
    environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"
    command = [*installed.program, "doctor"]
    doctor = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=False)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert f"ok     port: a hub answers on {installed.port} and is ready" in doctor.stdout


def is_ready(hub: Hub) -> bool:
    try:
        return bool(get(hub, "/readyz"))
    except urllib.error.HTTPError:
        return False
