"""Behind a proxy that ends TLS everything is secure; a server that the network can reach without TLS says so."""

import http.client
import ipaddress
import re
import stat
from urllib.parse import urlencode

import pytest
from websockets.sync.client import connect

from dashboard.server import listen_addresses
from dashboard.server.request_scheme import https_hosts, with_browser_scheme
from tests.support.live import Server, until

HOST = "switchboard.example"
ORIGIN = f"https://{HOST}"
PROXIES = [ipaddress.ip_network("10.0.0.0/8")]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    served = Server(tmp_path_factory.mktemp("tls") / "data", "--no-demo", SWITCHBOARD_ORIGINS=ORIGIN)
    yield served.start()
    served.kill()


def ask(server, method, path, body=None, **headers):
    """Send a request as the proxy does: over plain HTTP, with the browser's Host."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path, body and urlencode(body), {"Host": HOST} | headers)
        answer = connection.getresponse()
        answer.read()
        return answer
    finally:
        connection.close()


def cookies(answer):
    return {line.split("=")[0]: line for line in answer.headers.get_all("Set-Cookie") or ()}


def sign_in(server, link):
    """Follow a sign-in link as a browser behind the proxy; return the last answer and the cookies set."""
    page = ask(server, "GET", link.removeprefix(ORIGIN), **{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"})
    return page, cookies(page)


def test_every_link_is_one_the_browser_can_open(server):
    server.command("user", "maria", "--role", "viewer")

    printed = until(lambda: re.search(r"One-time sign-in link: (\S+)", server.output()), what="the link")

    assert printed[1].startswith(f"{ORIGIN}/sign-in/link/?t=")
    assert server.command("signin-link", "maria").splitlines()[-1].startswith(f"{ORIGIN}/sign-in/link/?t=")


def test_pages_are_kept_to_tls_and_their_socket_too(server):
    page = ask(server, "GET", "/sign-in/")

    assert page.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert f"connect-src 'self' wss://{HOST};" in page.headers["Content-Security-Policy"]
    assert set(cookies(page)) == {"switchboard_csrf"}
    assert all("; Secure" in line for line in cookies(page).values())


def test_the_loopback_address_beside_it_stays_plain(server):
    page = ask(server, "GET", "/sign-in/", Host=f"127.0.0.1:{server.port}")

    assert "Strict-Transport-Security" not in page.headers
    assert f"ws://127.0.0.1:{server.port};" in page.headers["Content-Security-Policy"]
    assert not any("; Secure" in line for line in cookies(page).values())


def test_a_form_of_that_origin_is_taken_and_a_plain_ones_is_not(server):
    page = ask(server, "GET", "/sign-in/")
    token = re.search(r"switchboard_csrf=(\w+)", cookies(page)["switchboard_csrf"])[1]
    form = {"username": "nobody", "password": "wrong password", "csrfmiddlewaretoken": token}
    sent = {"Cookie": f"switchboard_csrf={token}", "Content-Type": "application/x-www-form-urlencoded"}

    statuses = [
        ask(server, "POST", "/sign-in/", form, Origin=origin, **sent).status for origin in (ORIGIN, f"http://{HOST}")
    ]

    assert statuses[0] != 403
    assert statuses[1] == 403


def test_a_session_is_sent_over_tls_alone_and_opens_a_safe_socket(server):
    server.command("user", "vera", "--role", "viewer")
    answer, set_cookies = sign_in(server, server.command("signin-link", "vera").splitlines()[-1])

    assert answer.status == 302
    assert "; Secure" in set_cookies["switchboard_session"]
    session = set_cookies["switchboard_session"].split(";")[0]
    address = f"ws://127.0.0.1:{server.port}/ws/"
    with connect(address, additional_headers={"Host": HOST, "Origin": ORIGIN, "Cookie": session}) as socket:
        socket.send('{"op":"subscribe","topic":"fleet"}')
        assert '"rows"' in socket.recv(timeout=60)


def test_the_database_is_its_owners_alone(server):
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in server.data_dir.glob("switchboard.sqlite3*")}

    assert set(files.values()) == {0o600}, files
    assert "switchboard.sqlite3-wal" in files


@pytest.mark.thorough
def test_an_address_named_at_the_start_is_served(tmp_path):
    server = Server(tmp_path / "data", "--no-demo", "--host", "127.0.0.2")
    try:
        server.launch()
        assert _status(server, "127.0.0.2") == 200
        assert f"http://127.0.0.2:{server.port}/sign-in/link/" in server.output()
        assert "Warning" not in server.output()
    finally:
        server.kill()


def _status(server, host):
    """Return the status of the sign-in page at an address, once there is an answer."""

    def ask_once():
        connection = http.client.HTTPConnection(host, server.port, timeout=60)
        try:
            connection.request("GET", "/sign-in/")
            status = connection.getresponse().status
            return status if status != 503 else None
        except OSError:
            return None
        finally:
            connection.close()

    return until(ask_once, within=60, what="the server to answer")


@pytest.mark.parametrize(
    ("headers", "peer", "scheme"),
    [
        ({"host": HOST}, "127.0.0.1", "https"),
        ({"host": "SWITCHBOARD.example:443"}, "127.0.0.1", "https"),
        ({"host": f"{HOST}:8000"}, "127.0.0.1", "http"),  # another origin
        ({"host": "both.example"}, "127.0.0.1", "http"),  # served with and without: only a proxy knows
        ({"host": "both.example", "x-forwarded-proto": "https"}, "127.0.0.1", "http"),  # anybody can write that
        ({"host": "both.example", "x-forwarded-proto": "https"}, "10.0.0.1", "https"),
        ({"host": "both.example", "x-forwarded-proto": "https"}, "::ffff:10.0.0.1", "https"),  # on an IPv6 socket
        ({"host": "both.example", "x-forwarded-proto": "https, http"}, "10.0.0.1", "http"),  # the proxy's own is last
        ({"host": "both.example", "x-forwarded-proto": "http"}, "10.0.0.1", "http"),
        ({}, "10.0.0.1", "http"),
    ],
)
def test_the_scheme_is_the_browsers_where_somebody_trusted_names_it(headers, peer, scheme):
    hosts = https_hosts([ORIGIN, "http://both.example", "https://both.example"])
    scope = {"type": "http", "scheme": "http", "client": (peer, 1)}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]

    assert with_browser_scheme(scope, hosts, PROXIES)["scheme"] == scheme
    assert with_browser_scheme(scope | {"scheme": "ws"}, hosts, PROXIES)["scheme"] == scheme.replace("http", "ws")


def test_a_host_that_is_listed_is_safe_on_its_own_port_alone():
    assert https_hosts(["https://Board.example:8443"]) == {b"board.example:8443"}
    assert https_hosts(["https://[2001:db8::7]"]) == {b"[2001:db8::7]", b"[2001:db8::7]:443"}


@pytest.mark.parametrize(
    ("host", "origins", "link", "warned"),
    [
        ("127.0.0.1", [], "http://127.0.0.1:80", ()),
        ("::1", [], "http://[::1]:80", ()),
        ("localhost", [], "http://localhost:80", ()),
        ("0.0.0.0", [], "http://127.0.0.1:80", ("plain HTTP", "SWITCHBOARD_ORIGINS lists the address")),
        ("::", [], "http://[::1]:80", ("plain HTTP", "SWITCHBOARD_ORIGINS lists the address")),
        ("192.0.2.1", [], "http://192.0.2.1:80", ("plain HTTP",)),
        ("0.0.0.0", ["http://a.example", ORIGIN], ORIGIN, ("plain HTTP",)),
    ],
)
def test_the_start_prints_an_address_that_works_and_what_listening_means(host, origins, link, warned):
    assert listen_addresses.public_url(host, 80, origins) == link
    warning = listen_addresses.warning(host, 80, origins)
    assert bool(warning) == bool(warned)
    assert all(words in " ".join(warning.split()) for words in warned)
