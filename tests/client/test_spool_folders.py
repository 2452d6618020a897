"""Where a process configured by its environment spools: no other agent's messages are sent with its token."""

import hashlib
import os
from pathlib import Path

import pytest

import switchboard
from switchboard import BusMessage, HttpBus, get_bus
from tests.support.live import free_port


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Name a server that is away, and no agent."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("SWITCHBOARD_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("SWITCHBOARD_SPOOL_DIR", raising=False)
    monkeypatch.delenv("AGENT_NAME", raising=False)


def spooled(monkeypatch: pytest.MonkeyPatch, token: str, messages: int = 0) -> int:
    """Publish some messages as the program with this token; return how many wait for it then."""
    monkeypatch.setenv("SWITCHBOARD_TOKEN", token)
    bus = get_bus()
    assert isinstance(bus, HttpBus)
    for _ in range(messages):
        bus.publish("stream:c", BusMessage("stream:c", {"event": "log"}))
    waiting = bus.waiting
    bus.close(0)
    switchboard.set_bus(None)
    return waiting


def test_tokens_without_an_agents_name_do_not_share_a_spool(monkeypatch: pytest.MonkeyPatch) -> None:
    spooled(monkeypatch, "sb_a", messages=2)

    assert spooled(monkeypatch, "sb_b") == 0
    assert spooled(monkeypatch, "sb_a") == 2


def test_new_token_of_a_named_agent_has_its_spool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_NAME", "Desk")
    spooled(monkeypatch, "sb_revoked", messages=2)

    assert spooled(monkeypatch, "sb_new") == 2


def test_what_waits_in_the_folder_that_tokens_shared_is_taken_over_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spooled(monkeypatch, "sb_a", messages=2)
    (own,) = (tmp_path / "switchboard" / "spool").iterdir()
    own.rename(own.with_name(shared_folder()))

    assert spooled(monkeypatch, "sb_b") == 2
    assert spooled(monkeypatch, "sb_a") == 0
    assert spooled(monkeypatch, "sb_b") == 2


def shared_folder() -> str:
    """Name the folder that a version before used for all tokens without an agent's name."""
    return hashlib.sha256(f"{os.environ['SWITCHBOARD_URL']}\0".encode()).hexdigest()[:16]
