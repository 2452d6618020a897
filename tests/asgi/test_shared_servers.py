"""A run fails where two files write to one conversation of a server that they share."""

from uuid import uuid4

from tests.support.doors import Caller
from tests.support.live import Server
from tests.support.shared_servers import Writers


def test_two_files_that_write_to_one_conversation_clash(server: Server, caller: Caller, agent: Caller) -> None:
    writers = Writers()
    writers.share("the doors", server)
    writers.note("before.py")
    for file, who, key in (("a.py", caller, "clash"), ("b.py", agent, "clash"), ("b.py", agent, "clash-alone")):
        assert who.publish(f"stream:{key}", {"event": "log", "text": "x"}).status == 201
        writers.note(file)

    (clash,) = writers.clashes()
    assert clash.startswith("conversation 'clash' of the server of the doors is written to by a.py and b.py: ")


def test_a_random_key_is_of_one_file_also_when_its_last_event_comes_late(server: Server, caller: Caller) -> None:
    writers, key = Writers(), uuid4().hex
    writers.share("the doors", server)
    for file in ("a.py", "b.py"):
        assert caller.publish(f"stream:{key}", {"event": "log", "text": "x"}).status == 201
        writers.note(file)

    assert writers.clashes() == []
    assert key not in str(writers.noted())


def test_two_files_in_processes_of_their_own_clash() -> None:
    first, other, both = Writers(), Writers(), Writers()
    first.merge({"'a'": ["a.py"], "'b'": ["a.py"]})
    other.merge({"'a'": ["b.py"], "'c'": ["b.py"]})
    for process in (first, other):
        both.merge(process.noted())

    assert first.clashes() == other.clashes() == []
    assert [line.partition(":")[0] for line in both.clashes()] == ["conversation 'a' is written to by a.py and b.py"]
