"""docker-compose.yml and the Dockerfile: documented variables, no default secrets, probes, nothing run as root."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
HUB = ("migrate", "web", "worker")
# ${NAME}, ${NAME:-default}, ${NAME:?message}
REFERENCE = re.compile(r"\$\{([A-Z_]+)(?:(:[-?])([^}]*))?\}")


def variables() -> set[str]:
    passed = {name for service in HUB for name in SERVICES[service]["environment"]}
    return passed | {match[1] for match in REFERENCE.finditer(COMPOSE)}


def test_the_services() -> None:
    assert set(SERVICES) == {"postgres", *HUB}
    assert SERVICES["postgres"]["image"] == "pgvector/pgvector:pg17"
    assert {"MEMORYHUB_SECRET_KEY", "DATABASE_URL", "POSTGRES_PASSWORD"} <= variables()


@pytest.mark.parametrize("name", sorted(variables()))
def test_every_variable_is_documented(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs/settings.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["POSTGRES_PASSWORD", "MEMORYHUB_SECRET_KEY"])
def test_a_secret_has_no_default_and_says_how_to_make_one(name: str) -> None:
    found = [match for match in REFERENCE.finditer(COMPOSE) if match[1] == name]
    assert found
    assert all(match[2] == ":?" and "openssl rand" in match[3] for match in found)


def test_nothing_else_is_required_or_preset() -> None:
    others = [match for match in REFERENCE.finditer(COMPOSE) if match[2] != ":?"]
    assert len(others) > 5
    assert {(match[2], match[3]) for match in others} == {(":-", "")}


def test_migrations_run_once_and_before_the_rest() -> None:
    assert SERVICES["migrate"]["restart"] == "no"
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for service in ("web", "worker"):
        assert SERVICES[service]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
        assert SERVICES[service]["restart"] == "unless-stopped"


@pytest.mark.parametrize("service", HUB)
def test_the_hub_writes_to_its_data_alone(service: str) -> None:
    given = SERVICES[service]
    assert given["read_only"] is True
    assert (given["tmpfs"], given["volumes"]) == (["/tmp"], ["home:/data"])
    assert (given["cap_drop"], given["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    # The positive control: the database needs its own rights and folders.
    assert "read_only" not in SERVICES["postgres"]


def test_the_image_carries_what_the_program_requires() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = set(
        re.findall(r"^([a-z0-9-]+)(?:\[[^]]*\])?==", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE)
    )
    wanted = {re.split(r"[^A-Za-z0-9-]", name)[0].lower() for name in project["dependencies"]}
    assert {"numpy", "pystemmer"} <= wanted
    assert wanted <= locked
    assert "requests" not in wanted & locked


@pytest.mark.parametrize(("service", "path"), [("web", "/healthz"), ("worker", "/readyz")])
def test_probes_are_python_that_asks_the_right_page(service: str, path: str) -> None:
    *_, code = SERVICES[service]["healthcheck"]["test"]
    compile(code, service, "exec")
    assert f":8000{path}'" in code


def test_the_port_is_open_to_this_machine_alone() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published == ["127.0.0.1:8000:8000"]


def test_data_is_kept_in_volumes() -> None:
    declared = set(yaml.safe_load(COMPOSE)["volumes"])
    used = {mount.partition(":")[0] for service in SERVICES.values() for mount in service["volumes"]}
    assert used == declared


def test_the_image_holds_no_secret_and_does_not_run_as_root() -> None:
    assert "--require-hashes" in DOCKERFILE
    assert not re.search(r"KEY|PASSWORD|TOKEN|SECRET", DOCKERFILE)
    assert re.findall(r"^USER (\w+)", DOCKERFILE, re.MULTILINE)[-1:] == ["hub"]


def test_only_what_the_image_copies_goes_to_the_builder() -> None:
    first, *let_in = [
        line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] in {"*", "!"}
    ]
    assert first == "*"
    copied = set(re.findall(r"^COPY (\S+)", DOCKERFILE, re.MULTILINE))
    assert {line.removeprefix("!") for line in let_in if line.startswith("!")} == copied
    assert all((ROOT / name).exists() for name in copied)
