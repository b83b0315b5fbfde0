"""Where a tenant's own endpoint may be: at an address of the public internet.

Somebody who may enter an address in the admin must not reach through it what only the hub's host can reach: its own
services, the private network, the metadata of a cloud. A name is resolved anew for each connection, and the connection
goes to the address that was looked at, so a name that leads elsewhere later does not help.
"""

import ipaddress
import socket
from urllib.parse import urlsplit

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories import conf

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Addresses of IPv4 behind a translator (RFC 6052): the last four bytes are the address.
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
# Nothing beyond it is given to anybody as a public address of IPv6.
_UNICAST = ipaddress.ip_network("2000::/3")
# IANA's registries of special-purpose addresses, with multicast. Python's own list lets some through, and which depends
# on its version. Also those that routers do pass on: an anycast address leads to whatever is nearest to the hub.
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # behind a provider's translator; some clouds have their metadata there
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments; some clouds have their metadata there
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarking
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and the broadcast
            "2001::/23",  # protocol assignments: Teredo, benchmarking, AMT, AS112, ORCHID, DRIP
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4: an address of IPv4 behind whatever relay is nearest
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
LONGEST_ADDRESS = 500


# Code of a refusal that MEMORYHUB_PRIVATE_ENDPOINTS would lift.
PRIVATE = "private_endpoint"


class AddressRefused(Exception):
    """An address that no tenant's endpoint may have; the message is for the operator and names no address. `code`:
    PRIVATE, where whoever runs the hub can allow it."""

    def __init__(self, message: str | Promise, *, code: str = "invalid") -> None:
        super().__init__(message)
        self.code = code


def check_address(url: str) -> None:
    """Look at an address before it is stored; resolves its name. Errors: AddressRefused.

    The hub's resolver bounds how long that takes.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise AddressRefused(_("This is not an address.")) from None
    if parts.scheme not in ("http", "https") or not host or any(character.isspace() for character in url):
        raise AddressRefused(_("Enter an address that begins with https://."))
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise AddressRefused(_("An address has no user name, password, question mark or number sign."))
    if conf.is_private_endpoint(url):
        return
    if parts.scheme != "https":
        raise AddressRefused(
            _(
                "What the hub sends there is about people: the address must begin with https://. Whoever runs the hub "
                "can allow a host in its own network, also with http://, with MEMORYHUB_PRIVATE_ENDPOINTS."
            ),
            code=PRIVATE,
        )
    try:
        public_addresses(host, port or 443)
    except OSError:
        raise AddressRefused(_("This host name cannot be resolved.")) from None


def public_addresses(host: str, port: int) -> list[str]:
    """The addresses of a host, if all of them are public. Errors: AddressRefused, OSError (it cannot be resolved)."""
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError("This is no host name.") from None
    # The numbers of an address can be written in many ways; what the resolver makes of them counts.
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    if not addresses or not all(map(_is_public, addresses)):
        raise AddressRefused(
            _(
                "This address leads into a private network. Whoever runs the hub can allow the host with "
                "MEMORYHUB_PRIVATE_ENDPOINTS."
            ),
            code=PRIVATE,
        )
    return addresses


def _is_public(text: str) -> bool:
    address = _unwrapped(ipaddress.ip_address(text))
    if isinstance(address, ipaddress.IPv6Address) and address not in _UNICAST:
        return False
    return not any(address in network for network in _SPECIAL)


def _unwrapped(address: _Address) -> _Address:
    """The address of IPv4 that one of IPv6 stands for, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped:
        return address.ipv4_mapped
    if address in _TRANSLATED:
        return ipaddress.IPv4Address(address.packed[-4:])
    return address
