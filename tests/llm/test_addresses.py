"""Where a tenant's own endpoint may be, when its address is entered and when it is called."""

import ipaddress
import socket
from dataclasses import replace
from typing import Any

import pytest
from django.conf import LazySettings

from memories.conf import LLMConfig
from memories.exceptions import ModelMisconfigured, ModelUnavailable
from memories.llm import addresses, client
from memories.llm.addresses import AddressRefused, check_address
from tests.each import each
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


# Every network of IANA's registries of special-purpose addresses, with multicast: its first and its last address, and
# single addresses that such registries or clouds name.
NETWORKS = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32",
    "::1/128", "::/128", "::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32",
    "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48", "2001:10::/28",
    "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16",
    "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)  # fmt: skip
SINGLE = (
    "169.254.169.254", "100.100.100.200", "192.0.0.192", "192.0.0.9", "192.0.0.170", "192.88.99.1", "fd00:ec2::254",
    "fe80::1%lo", "400::1", "4000::1",
)  # fmt: skip
# An address of IPv4 inside one of IPv6: mapped, behind a translator, behind a relay (6to4, Teredo), and as it once was.
WITHIN = ("::ffff:{}", "64:ff9b::{}", "64:ff9b:1::{}", "2002:{hex}::1", "2001:0:{hex}::1", "::{}")


def ends_of(network: str) -> list[str]:
    found = ipaddress.ip_network(network)
    return [str(found[0]), str(found[-1])]


def within(address: str) -> list[str]:
    digits = f"{int(ipaddress.IPv4Address(address)):08x}"
    return [form.format(address, hex=f"{digits[:4]}:{digits[4:]}") for form in WITHIN]


def beside(network: str) -> list[str]:
    """The addresses before the first and behind the last one."""
    found = ipaddress.ip_network(network)
    return [str(found[0] - 1), str(found[-1] + 1)]


@pytest.mark.parametrize(
    "address",
    [*(end for one in NETWORKS for end in ends_of(one)), *SINGLE, *within("10.0.0.1"), *within("192.0.0.192")],
)
def test_an_address_inside_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolves(monkeypatch, [address])
    with pytest.raises(AddressRefused):
        check_address("https://models.example/v1")
    # One public address beside it does not help.
    resolves(monkeypatch, [PUBLIC, address])
    with pytest.raises(AddressRefused):
        check_address("https://models.example/v1")


# The neighbours of networks that are not refused themselves: none is wider than it should be.
BESIDE = (
    "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.2.0/24", "192.31.196.0/24",
    "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
    "203.0.113.0/24", "2001:db8::/32", "2620:4f:8000::/48",
)  # fmt: skip


@pytest.mark.parametrize(
    "address",
    [
        *(PUBLIC, "8.8.8.8", "2606:4700::6810:85e5", "::ffff:8.8.8.8", "64:ff9b::808:808"),
        *("192.0.1.0", "223.255.255.255", "2001:200::1", "2003::1", "3ffe::1"),
        *(one for network in BESIDE for one in beside(network)),
    ],
)
def test_a_public_one_is_taken(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = resolves(monkeypatch, [address])
    check_address("https://models.example:8443/v1")
    assert asked == ["models.example"]


@each(
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


@each("url", ["http://127.0.0.1:11434/v1", "https://127.0.0.1/v1", "http://llm.internal/v1"])
def test_who_is_refused_an_own_host_reads_how_it_can_be_allowed(url: str) -> None:
    with pytest.raises(AddressRefused, match="MEMORYHUB_PRIVATE_ENDPOINTS"):
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
