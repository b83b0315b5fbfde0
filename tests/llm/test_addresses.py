"""Where a tenant's own endpoint may be, when its address is entered and when it is called."""

import socket
from dataclasses import replace
from typing import Any

import pytest
from django.conf import LazySettings

from memories.conf import LLMConfig
from memories.exceptions import ModelMisconfigured, ModelUnavailable
from memories.llm import addresses, client
from memories.llm.addresses import AddressRefused, check_address
from tests.llm.conftest import ANSWER, MESSAGES
from tests.llm.endpoint import Endpoint, Handler, says

PUBLIC = "93.184.215.14"


def resolves(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """The n-th look-up finds the n-th answer, further ones the last; returns the names that were looked up."""
    asked: list[str] = []

    def found(host: str, port: int, **_: Any) -> list[Any]:
        answer = answers[min(len(asked), len(answers) - 1)]
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in answer]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    return asked


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.9.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
        "169.254.169.254", "100.64.0.1", "198.18.0.1", "192.0.2.1", "224.0.0.1", "255.255.255.255", "240.0.0.1",
        "::1", "::", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "2001:db8::1",
        "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::",
        "::7f00:1",
    ],
)  # fmt: skip
def test_an_address_inside_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolves(monkeypatch, [address])
    with pytest.raises(AddressRefused):
        check_address("https://models.example/v1")
    # One public address beside it does not help.
    resolves(monkeypatch, [PUBLIC, address])
    with pytest.raises(AddressRefused):
        check_address("https://models.example/v1")


@pytest.mark.parametrize("address", [PUBLIC, "8.8.8.8", "2606:4700::6810:85e5", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_one_is_taken(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = resolves(monkeypatch, [address])
    check_address("https://models.example:8443/v1")
    assert asked == ["models.example"]


@pytest.mark.parametrize(
    "url",
    ["https://127.0.0.1/v1", "https://2130706433/", "https://0x7f.1/v1", "https://[::1]/v1", "https://localhost/v1"],
)
def test_numbers_in_any_form_are_what_the_resolver_makes_of_them(url: str) -> None:
    with pytest.raises(AddressRefused):
        check_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://models.example/v1", "ftp://models.example/", "models.example", "//models.example", "https://",
        "https://user:word@models.example/", "https://user@models.example/", "https://models.example/?a=b",
        "https://models.example/#a", "https://models.example:99999/", "https://models.example:port/", "https://[::1/",
        "https://models .example/", "file:///etc/passwd", "",
    ],
)  # fmt: skip
def test_what_is_no_address_of_an_endpoint(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolves(monkeypatch, [PUBLIC])
    with pytest.raises(AddressRefused):
        check_address(url)


def test_a_name_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(AddressRefused, match="resolved"):
        check_address("https://models.example/v1")


@pytest.mark.parametrize(
    ("allowed", "url", "is_allowed"),
    [
        (["127.0.0.1"], "http://127.0.0.1:11434/v1", True),
        (["127.0.0.1:11434"], "http://127.0.0.1:11434/v1", True),
        (["127.0.0.1:11434"], "http://127.0.0.1:5432/v1", False),
        (["LLM.internal"], "https://llm.Internal/v1", True),
        (["llm.internal:443"], "https://llm.internal/v1", True),
        (["llm.internal"], "https://llm.internal.example/v1", False),
        (["[::1]:80"], "http://[::1]/v1", True),
    ],
)
def test_hosts_that_the_hub_allows(
    allowed: list[str], url: str, is_allowed: bool, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolves(monkeypatch, ["10.0.0.1"])
    settings.MEMORYHUB_PRIVATE_ENDPOINTS = allowed
    if is_allowed:
        check_address(url)
    else:
        with pytest.raises(AddressRefused):
            check_address(url)


class TestAtTheCall:
    def ask(self, config: LLMConfig) -> None:
        client.complete(messages=MESSAGES, answer=ANSWER, config=config)

    def test_a_guarded_call_reaches_nothing_inside(self, endpoint: Endpoint, config: LLMConfig) -> None:
        with pytest.raises(ModelMisconfigured):
            self.ask(replace(config, entered=True, guarded=True))
        assert endpoint.requests == []
        endpoint.responds(says('{"new_facts": []}'))
        self.ask(replace(config, entered=True))
        assert len(endpoint.requests) == 1

    def test_a_name_that_leads_elsewhere_by_now(
        self, endpoint: Endpoint, config: LLMConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        url = endpoint.url.replace("127.0.0.1", "models.example")
        asked = resolves(monkeypatch, [PUBLIC], ["127.0.0.1"])
        check_address(url.replace("http:", "https:"))
        with pytest.raises(ModelMisconfigured):
            self.ask(replace(config, base_url=url, entered=True, guarded=True))
        assert (asked, endpoint.requests) == (["models.example"] * 2, [])

    def test_the_connection_goes_to_the_address_that_was_looked_at(
        self, endpoint: Endpoint, config: LLMConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The name is looked up once for each call, and what is connected to is that answer.
        monkeypatch.setattr(addresses, "_is_public", lambda address: True)
        url = endpoint.url.replace("127.0.0.1", "models.example")
        asked = resolves(monkeypatch, ["127.0.0.1"], ["203.0.113.9"])
        monkeypatch.setattr(socket, "create_connection", _connecting(real=socket.create_connection))
        endpoint.responds(says('{"new_facts": []}'))
        self.ask(replace(config, base_url=url, entered=True, guarded=True))
        assert asked == ["models.example"]
        assert endpoint.headers[0]["Host"].startswith("models.example:")

    def test_a_name_that_is_gone_is_an_outage(self, config: LLMConfig, monkeypatch: pytest.MonkeyPatch) -> None:
        def unknown(*_: Any, **__: Any) -> Any:
            raise socket.gaierror

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        with pytest.raises(ModelUnavailable):
            self.ask(replace(config, base_url="https://models.example/v1", entered=True, guarded=True))

    def test_a_redirect_is_not_followed(self, endpoint: Endpoint, config: LLMConfig) -> None:
        def elsewhere(handler: Handler) -> None:
            handler.whole(307, b"{}", Location=endpoint.url + "/elsewhere")

        endpoint.responds(elsewhere)
        with pytest.raises(ModelMisconfigured):
            self.ask(replace(config, entered=True))
        assert len(endpoint.requests) == 1

    def test_what_is_of_the_hubs_account_stays_here(
        self, endpoint: Endpoint, config: LLMConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-hub")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "project-of-the-hub")
        endpoint.responds(says('{"new_facts": []}'))
        self.ask(config)
        self.ask(replace(config, entered=True))
        hubs, tenants = endpoint.headers
        assert hubs["OpenAI-Organization"] == "org-of-the-hub"
        assert (tenants["OpenAI-Organization"], tenants["OpenAI-Project"]) == (None, None)

    def test_a_key_is_in_no_text_of_its_configuration(self, config: LLMConfig) -> None:
        assert config.api_key
        assert config.api_key not in repr(config)


def _connecting(*, real: Any) -> Any:
    def connect(address: tuple[str, int], *given: Any, **named: Any) -> Any:
        assert address[0] == "127.0.0.1", "the connection does not resolve the name again"
        sock = socket.socket()
        sock.connect(address)
        return sock

    return connect
