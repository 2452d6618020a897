"""`serve` refuses an address that it cannot listen on before it makes or prints anything."""

import socket

import pytest
from django.core.management import CommandError, call_command

from dashboard.server import listen_addresses


@pytest.fixture
def taken_port():
    """A port on which something listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.mark.parametrize("port", ["0", "-1", "65536", "99999", "8e3", "٨٠٠٠", ""])
def test_a_port_must_be_a_number_that_tcp_has(port, capsys):
    with pytest.raises(CommandError, match="argument --port: must be a number from 1 to 65535"):
        call_command("serve", "--port", port)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", ""])
def test_serve_says_that_a_port_is_taken_and_makes_nothing(tmp_path, settings, capsys, taken_port, host):
    settings.DATA_DIR = tmp_path

    with pytest.raises(CommandError, match=f"port {taken_port} is already in use: .* choose another with --port"):
        call_command("serve", "--host", host, "--port", str(taken_port))

    assert capsys.readouterr().out == ""
    assert not (tmp_path / "lock").exists()


@pytest.mark.parametrize("host", ["999.1.1.1", "no such name", "a" * 300, "203.0.113.1"])
def test_serve_names_a_host_that_is_not_here(tmp_path, settings, capsys, host):
    settings.DATA_DIR = tmp_path

    with pytest.raises(CommandError, match=f"--host {host} "):
        call_command("serve", "--host", host, "--port", "18080")

    assert capsys.readouterr().out == ""


def test_a_free_port_is_free_afterwards(taken_port):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]

    listen_addresses.ensure_free("127.0.0.1", free)
    listen_addresses.ensure_free("127.0.0.1", free)
