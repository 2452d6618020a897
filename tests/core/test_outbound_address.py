"""Where webhooks may go: public addresses only, whatever way they are written and whatever a name resolves to."""

import ipaddress

import pytest

from conversations.core import outbound_address
from conversations.core.errors import Invalid
from conversations.core.outbound_address import NONE, AddressRefused, AllowList

HOOK = outbound_address.parse("https://example.com/hook")

NOT_PUBLIC = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255",
    "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1",
    "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "::", "::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::a00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::",
    "3fff::1", "5f00::1", "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
]  # fmt: skip
PUBLIC = [
    "93.184.216.34", "8.8.8.8", "172.32.0.1", "192.167.255.255", "2606:4700::1111", "::ffff:8.8.8.8",
    "64:ff9b::808:808",
]  # fmt: skip


SPECIAL = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
    "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "fc00::/7", "fe80::/10", "fec0::/10",
    "ff00::/8",
)  # fmt: skip


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused(address):
    with pytest.raises(AddressRefused, match="not a public address"):
        outbound_address.check(HOOK, [address], NONE)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_fine(address):
    assert outbound_address.check(HOOK, [address], NONE) == [address]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_one_address_of_several_that_is_not_public_spoils_them_all(address):
    with pytest.raises(AddressRefused):
        outbound_address.check(HOOK, ["8.8.8.8", address], NONE)


def test_a_name_without_addresses_is_refused():
    with pytest.raises(AddressRefused, match="has no address"):
        outbound_address.check(HOOK, [], NONE)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/", "file:///etc/passwd", "https://", "https:///path", "//example.com", "example.com/hook",
        "https://example.com:0/", "https://example.com:65536/", "https://example.com:x/",
        "https://user@example.com/", "https://user:word@example.com/", "https://example.com@127.0.0.1/",
        "https://example.com#@127.0.0.1/", "https://example.com/#part", "https://example.com\\@127.0.0.1/",
        "https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://017700000001/", "https://127.1/",
        "https://0177.0.0.1/", "https://0/", "https://127.0.0.1.0x1/", "https://foo.0x0/", "https://1.2.3.4.5/",
        "https://127。0。0。1/", "https://①②⑦.0.0.1/", "https://exämple.com/", "https://[::1/", "https://[127.0.0.1]/",
        "https://[fe80::1%25eth0]/", "https://[v1.fe]/", "https://a b.com/", "https://a\tb.com/", "https://a\r\nb.com/",
        "https://example.com/a b", "https://example.com/\r\nX: y", "https://example.com/\x00", "https://-a.com/",
        "https://a..b/", "https://" + "a" * 64 + ".com/", "https://example.com/" + "a" * 2000, "",
    ],
)  # fmt: skip
def test_an_odd_url_is_refused(url):
    with pytest.raises(Invalid) as refused:
        outbound_address.parse(url)

    assert refused.value.field == "url"


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://Example.COM", ("https", "example.com", 443, "/")),
        ("https://example.com:8443/a/b?c=d%20e", ("https", "example.com", 8443, "/a/b?c=d%20e")),
        ("http://hooks.internal/x", ("http", "hooks.internal", 80, "/x")),
        ("https://8.8.8.8/x", ("https", "8.8.8.8", 443, "/x")),
        ("https://[2606:4700::1111]:99/x", ("https", "2606:4700::1111", 99, "/x")),
    ],
)
def test_a_usual_url_is_taken_apart(url, parts):
    assert tuple(outbound_address.parse(url)) == parts


def test_what_is_allowed_is_reached_and_nothing_else():
    allowed = AllowList.of(["hooks.internal", "10.1.0.0/16", "::1", "192.168.7.7"])
    http = outbound_address.parse("http://elsewhere/")

    for url, address in (
        (outbound_address.parse("http://HOOKS.internal/"), "10.9.9.9"), (http, "10.1.2.3"), (http, "::ffff:10.1.2.3"),
        (http, "::1"), (http, "192.168.7.7"),
    ):  # fmt: skip
        assert outbound_address.check(url, [address], allowed) == [address]
    for address in ("10.2.0.1", "192.168.7.8", "127.0.0.1", "::ffff:10.2.0.1"):
        with pytest.raises(AddressRefused):
            outbound_address.check(http, [address], allowed)


def test_http_is_for_what_is_allowed_only():
    with pytest.raises(AddressRefused, match="use https"):
        outbound_address.check(outbound_address.parse("http://example.com/"), ["8.8.8.8"], NONE)


@pytest.mark.parametrize("entry", ["10.0.0.0/33", "a b", "2130706433.0x1", "http://x", "host/24", ""])
def test_a_wrong_entry_of_the_setting_is_refused(entry):
    with pytest.raises(ValueError, match="must be hosts, addresses or networks"):
        AllowList.of([entry])


def test_no_address_of_a_special_range_is_public():
    """The table of IANA's special-purpose ranges, at their edges."""
    for text in [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
    ]:
        network = ipaddress.ip_network(text)
        assert not outbound_address.is_public(network[0])
        assert not outbound_address.is_public(network[-1])
