"""docker-compose.yml and the Dockerfile: documented variables, no default secrets, probes, nothing run as root."""

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from memories.telemetry.traces import ENDPOINTS
from memories.web.application import UPLOADS
from tests.each import each

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
NGINX = (ROOT / "deploy/nginx.conf").read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
HUB = ("migrate", "web", "worker")
# What docker-compose.yml makes addresses and files of.
OF_COMPOSE = {"POSTGRES_PASSWORD", "POSTGRES_RUNTIME_PASSWORD", "TLS_CERTIFICATE", "TLS_KEY"}
# Of the embedded server, which no container has.
OF_EMBEDDED = {"MEMORYHUB_ARCHIVE"}
# ${NAME}, ${NAME:-default}, ${NAME:?message}
REFERENCE = re.compile(r"\$\{([A-Z_]+)(?:(:[-?])([^}]*))?\}")


def variables() -> set[str]:
    passed = {name for service in HUB for name in SERVICES[service]["environment"]}
    return passed | {match[1] for match in REFERENCE.finditer(COMPOSE)}


def documented() -> set[str]:
    rows = re.findall(r"^\| (`[A-Z_`, ]+`)[^|]*\|", SETTINGS.partition("## A tenant's own numbers")[0], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"[A-Z_]{3,}", row)}


def test_the_services() -> None:
    assert set(SERVICES) == {"postgres", *HUB, "proxy"}
    assert SERVICES["postgres"]["image"] == "pgvector/pgvector:pg17"
    assert {"MEMORYHUB_SECRET_KEY", "DATABASE_URL", "POSTGRES_PASSWORD"} <= variables()


def test_every_documented_setting_reaches_the_containers() -> None:
    """What stood open: two dozen of them were documented and dropped."""
    assert {"MEMORYHUB_OIDC_URL", "MEMORYHUB_SECOND_FACTOR", "MEMORYHUB_RERANK_API_KEY"} <= documented()
    passed = documented() - OF_COMPOSE - OF_EMBEDDED
    for service in ("web", "worker"):
        assert passed - {"MEMORYHUB_OWNER_URL"} == set(SERVICES[service]["environment"])
    assert passed == set(SERVICES["migrate"]["environment"])
    assert documented() >= OF_COMPOSE


def test_each_is_passed_under_its_own_name() -> None:
    given = SERVICES["web"]["environment"]
    fixed = {"DATABASE_URL", "MEMORYHUB_HOME"}
    assert [name for name, value in given.items() if name not in fixed and not value.startswith(f"${{{name}:")] == []


def test_only_the_migration_owns_the_tables() -> None:
    owner = SERVICES["migrate"]["environment"]["MEMORYHUB_OWNER_URL"]
    assert owner.startswith("postgresql://memoryhub:${POSTGRES_PASSWORD:")
    for service in HUB:
        address = SERVICES[service]["environment"]["DATABASE_URL"]
        assert address.startswith("postgresql://memoryhub_runtime:${POSTGRES_RUNTIME_PASSWORD:")
        assert owner.rpartition("@")[2] == address.rpartition("@")[2]
    for service in ("web", "worker"):
        assert "${POSTGRES_PASSWORD" not in str(SERVICES[service])


def test_images_are_pinned_where_the_digest_can_be_looked_up() -> None:
    pinned = re.compile(r"[a-z]+:\d[\w.-]+@sha256:[0-9a-f]{64}")
    assert pinned.fullmatch(SERVICES["proxy"]["image"])
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(stages) == 2
    assert all(map(pinned.fullmatch, stages))
    # The positive control: the one that is not official, and says so.
    assert not pinned.fullmatch(SERVICES["postgres"]["image"])


class TestProxy:
    def test_it_is_the_only_way_in(self) -> None:
        published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
        assert published == {"proxy": ["443:8443"]}

    def test_it_runs_without_a_right_and_writes_to_memory_alone(self) -> None:
        proxy = SERVICES["proxy"]
        assert (proxy["read_only"], proxy["tmpfs"], proxy["cap_drop"]) == (True, ["/tmp"], ["ALL"])
        assert proxy["user"] == "101:101"
        assert re.findall(r"^ *\w+_temp_path (\S+?)/", NGINX, re.MULTILINE) == ["/tmp"] * 5

    @each(
        "line",
        [
            "proxy_request_buffering on",
            "client_header_timeout 10s",
            "client_body_timeout 10s",
            "listen 8443 ssl",
            "proxy_set_header X-Forwarded-For $remote_addr",
            "proxy_set_header X-Forwarded-Proto https",
            "proxy_set_header Host $http_host",
        ],
    )
    def test_it_buffers_ends_slow_senders_and_tells_who_calls(self, line: str) -> None:
        assert f" {line};" in NGINX

    def test_files_to_be_imported_reach_the_hub_whatever_their_size(self) -> None:
        [(address, block)] = re.findall(r"location ~ (\S+) \{([^}]*)\}", NGINX)
        assert all(re.search(address, path) for path in UPLOADS)
        assert not [path for path in ("/api/v1/facts", "/api/v1/imports/1/undo") if re.search(address, path)]
        assert "proxy_request_buffering off;" in block
        [most] = re.findall(r"client_max_body_size (\d+)m;", block)
        # With what a form has beside the file.
        [(low, high)] = re.findall(r"`MEMORYHUB_IMPORT_MEGABYTES`.*\(([\d,]+)–([\d,]+)\)", SETTINGS)
        assert int(most) == int(high.replace(",", "")) + 1 > int(low)

    def test_its_files_are_those_that_compose_mounts(self) -> None:
        declared = yaml.safe_load(COMPOSE)
        assert (ROOT / declared["configs"]["proxy"]["file"]).read_text(encoding="utf-8") == NGINX
        for name in SERVICES["proxy"]["secrets"]:
            assert f"/run/secrets/{name};" in NGINX
            assert name in declared["secrets"]

    def test_no_log_of_it_has_a_query_or_a_link(self) -> None:
        [form] = re.findall(r"log_format discreet '([^']+)'", NGINX)
        assert set(re.findall(r"\$\w+", form)).isdisjoint(
            {"$request", "$request_uri", "$args", "$http_referer", "$uri"}
        )
        for way_in in ("/exports/", "/me/open/"):
            assert f"~^{way_in} {way_in}…;" in NGINX
        assert re.findall(r"access_log (.+);", NGINX) == ["/dev/stdout discreet"]
        assert re.findall(r"error_log (.+);", NGINX) == ["stderr crit"]


@each("name", sorted(variables()))
def test_every_variable_is_documented(name: str) -> None:
    assert f"`{name}`" in SETTINGS


@each("name", ["POSTGRES_PASSWORD", "POSTGRES_RUNTIME_PASSWORD", "MEMORYHUB_SECRET_KEY"])
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


@each("service", HUB)
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


def pins(name: str) -> dict[str, str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)(?:\[[^]]*\])?==(\S+)", text, re.MULTILINE))


@each("extra", ["traces", "tokenizers"])
def test_extras_of_the_image_have_the_versions_of_the_rest(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = pins(f"deploy/{extra}.lock")
    assert {re.split("[>=<]", name)[0] for name in project["optional-dependencies"][extra]} <= set(locked)
    for name in ("requirements.lock", "requirements-dev.lock"):
        others = pins(name)
        assert {one: others[one] for one in locked if one in others} == {
            one: locked[one] for one in locked if one in others
        }
    assert set(locked) <= set(pins("requirements-dev.lock"))


def test_the_image_carries_what_sends_traces() -> None:
    given = SERVICES["web"]["environment"]
    assert {*ENDPOINTS, "OTEL_TRACES_EXPORTER", "OTEL_SERVICE_NAME"} <= set(given)
    assert all(f"`{name}`" in SETTINGS for name in given if name.startswith("OTEL_"))


@each(("service", "path"), [("web", "/healthz"), ("worker", "/readyz")])
def test_probes_are_python_that_asks_the_right_page(service: str, path: str) -> None:
    *_, code = SERVICES[service]["healthcheck"]["test"]
    compile(code, service, "exec")
    assert f":8000{path}'" in code


def test_data_is_kept_in_volumes() -> None:
    declared = set(yaml.safe_load(COMPOSE)["volumes"])
    used = {mount.partition(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])}
    assert used == declared


def test_the_image_is_made_of_the_wheel() -> None:
    """Its last stage sees nothing of the clone but the wheel and what the lock pins; so does the stage of the wheel."""
    _, build, image = DOCKERFILE.split("\nFROM ")
    assert re.findall(r"^COPY (.+)", image, re.MULTILINE) == [
        "requirements.lock /srv/hub/",
        "deploy/traces.lock /srv/hub/",
        "deploy/tokenizers.lock /srv/hub/",
        "--from=wheel /wheels /srv/hub/wheels",
    ]
    for stage in (build, image):
        assert all("--require-hashes" in line or "--no-deps" in line for line in re.findall(r"-m pip .*", stage))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    locked = re.findall(r"^([a-z-]+)==", (ROOT / "deploy/build.lock").read_text(encoding="utf-8"), re.MULTILINE)
    assert {re.split("[>=<]", name)[0] for name in project["build-system"]["requires"]} <= set(locked)
    # What the wheel is made of is what the project says it is made of.
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {
        *wheel["packages"],
        *wheel["force-include"],
        project["project"]["readme"],
        *project["project"]["license-files"],
    }
    assert needed <= set(re.findall(r"^COPY (\S+)", build, re.MULTILINE))
    assert project["project"]["scripts"]["memoryhub"]
    for service in HUB:
        assert SERVICES[service]["command"][0] == "memoryhub"


def test_the_image_holds_no_secret_and_does_not_run_as_root() -> None:
    assert "--require-hashes" in DOCKERFILE
    assert not re.search(r"KEY|PASSWORD|TOKEN|SECRET", DOCKERFILE)
    assert re.findall(r"^USER (\w+)", DOCKERFILE, re.MULTILINE)[-1:] == ["hub"]


def test_only_what_the_image_copies_goes_to_the_builder() -> None:
    first, *let_in = [
        line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] in {"*", "!"}
    ]
    assert first == "*"
    copied = set(re.findall(r"^COPY (?!--from)(\S+)", DOCKERFILE, re.MULTILINE))
    assert {line.removeprefix("!") for line in let_in if line.startswith("!")} == copied
    assert all((ROOT / name).exists() for name in copied)
