"""Which addresses our requests may reach: public ones, and those that a setting allows (`SWITCHBOARD_ALERT_HOSTS` for
webhooks, `SWITCHBOARD_AGUI_HOSTS` for external agents).

A name is resolved again for each attempt, all of its addresses are checked, and the request goes to a checked address,
never to a name: a DNS answer that changes after the check changes nothing.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from conversations.core.errors import Invalid

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

PORTS = {"http": 80, "https": 443}
MAX_URL = 2000  # characters
_NAME = re.compile(
    r"(?=.{1,253}\.?$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*\.?"
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # of a host that begins to be an IPv4 address by other rules
_TARGET = re.compile(r"[!-~]*")  # printable ASCII without a space
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_FURTHER: tuple[Network, ...] = (  # that a version of Python takes for global, or parts of them
    ipaddress.ip_network("192.0.0.0/24"),  # protocol assignments
    ipaddress.ip_network("192.88.99.0/24"),  # 6to4 relays
    ipaddress.ip_network("2001::/23"),  # protocol assignments
    ipaddress.ip_network("2002::/16"),  # 6to4
    ipaddress.ip_network("3fff::/20"),  # documentation
    ipaddress.ip_network("5f00::/16"),  # segment routing
)
HTTPS_ONLY = "http is only for destinations that SWITCHBOARD_ALERT_HOSTS allows: use https"


class AddressRefused(Exception):
    """Nothing may be sent there; the text is for the admin."""


class OutboundUrl(NamedTuple):
    """A URL in parts. `host` is lower case, IPv6 without brackets; `target` is path and query."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def host_header(self) -> str:
        """Return the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class AllowList:
    """Addresses that an operator allows although they are not public."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> "AllowList":
        """Parse hosts, addresses and networks. Raises ValueError for anything else."""
        hosts, networks = set(), []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry.strip("[]")))
            except ValueError:
                host = entry.lower().rstrip(".")
                if "/" in entry or not is_host_name(host):
                    raise ValueError(f"must be hosts, addresses or networks; got {entry!r}") from None
                hosts.add(host)
        return cls(frozenset(hosts), tuple(networks))

    def has(self, host: str, address: Address) -> bool:
        """Return whether this host is allowed, or this address of it."""
        return host.rstrip(".") in self.hosts or any(address in network for network in self.networks)


NONE = AllowList()


def is_host_name(host: str) -> bool:
    """Return whether it is a name, and not another notation of an IPv4 address (such as `0x7f.1` or `2130706433`)."""
    return bool(_NAME.fullmatch(host)) and not _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2])


def parse(url: str) -> OutboundUrl:
    """Parse a URL. Raises Invalid with the field `url`, without repeating the URL, which may be a secret."""
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or "\\" in url or " " in url:
        raise Invalid(f"must be a URL of at most {MAX_URL:,} ASCII characters without spaces", field="url")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise Invalid("must be a URL such as https://example.com/hook", field="url") from None
    if parts.scheme not in PORTS or not host or port == 0:
        raise Invalid("must be a URL such as https://example.com/hook", field="url")
    if "@" in parts.netloc or parts.fragment:
        raise Invalid("must not contain a user name, a password or a fragment", field="url")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not _is_host(host, is_bracketed="[" in parts.netloc) or not _TARGET.fullmatch(target):
        raise Invalid("must name a host, or an IP address in its usual form", field="url")
    return OutboundUrl(parts.scheme, host, port or PORTS[parts.scheme], target)


def _is_host(host: str, *, is_bracketed: bool) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return not is_bracketed and is_host_name(host)
    return (address.version == 6) == is_bracketed and "%" not in host


def check(url: OutboundUrl, addresses: Sequence[str], allowed: AllowList) -> list[str]:
    """Return the addresses to connect to. Raises AddressRefused if one of them may not be reached."""
    if not addresses:
        raise AddressRefused(f"the host {url.host} has no address")
    for text in addresses:
        address = _plain(ipaddress.ip_address(text.partition("%")[0]))
        if allowed.has(url.host, address):
            continue
        if not is_public(address):
            name = url.host if url.host == str(address) else f"the host {url.host} is {address}, which"
            raise AddressRefused(f"{name} is not a public address; SWITCHBOARD_ALERT_HOSTS can allow it")
        if url.scheme != "https":
            raise AddressRefused(HTTPS_ONLY)
    return list(addresses)


def check_literal(url: OutboundUrl, allowed: AllowList) -> None:
    """Raise AddressRefused for a URL to which nothing can be sent, whatever its name resolves to."""
    try:
        ipaddress.ip_address(url.host)
    except ValueError:
        if url.scheme != "https" and url.host.rstrip(".") not in allowed.hosts and not allowed.networks:
            raise AddressRefused(HTTPS_ONLY) from None
    else:
        check(url, [url.host], allowed)


def is_public(address: Address) -> bool:
    """Return whether an address is on the public internet."""
    address = _plain(address)
    is_local = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
    is_special = address.is_multicast or address.is_reserved or address.is_link_local or address.is_unspecified
    return address.is_global and not is_local and not is_special and not any(address in net for net in _FURTHER)


def _plain(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address
