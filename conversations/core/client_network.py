"""Which network address a limit counts a client by: one machine with IPv6 has 2^64 addresses."""

import ipaddress

_PREFIX = 64  # bits: the smallest network that a machine is given (RFC 4291, section 2.5.1)


def client_network(address: str) -> str:
    """Return the /64 network of an IPv6 address, the IPv4 address that one stands for, and any other text as it is."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed), _PREFIX), strict=False))
