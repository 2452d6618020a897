"""What an unfinished import left behind is not part of the record: no backup counts it, and no restore keeps it."""

import json

import pytest

from tests.backup.test_backup import manifest_of
from tests.support.tiers import variants


def import_half(server, folder):
    """Import a recording, and die before its second batch is stored."""
    file = folder / "long.json"
    file.write_text(json.dumps([{"role": "user", "content": f"line {n}"} for n in range(3_000)]))
    server.environment["SWITCHBOARD_FAILPOINT"] = "before-commit:2"
    assert server.spawn(["import", str(file)], folder / "log", folder / "log").wait(120) == -9
    del server.environment["SWITCHBOARD_FAILPOINT"]
    assert staged_events(server) > 0


def staged_events(server):
    ((count,),) = server.rows(
        "SELECT COUNT(*) FROM conversations_event e JOIN conversations_conversation c ON c.id=e.conversation_id"
        " WHERE c.is_staged"
    )
    return count


@pytest.mark.slow
@pytest.mark.parametrize("kind", variants(["sqlite", "postgresql"]))
def test_a_backup_does_not_count_what_an_import_left_and_a_restore_drops_it(filled, place, tmp_path, kind):
    server, copy, file = filled(place(kind), 5), place(kind), tmp_path / "record.backup"
    import_half(server, tmp_path)
    ((conversations,),) = server.rows("SELECT COUNT(*) FROM conversations_conversation WHERE NOT is_staged")
    ((events,),) = server.rows("SELECT COUNT(*) FROM conversations_event")
    counts = f"{conversations} conversations with {events - staged_events(server)} events "

    assert f"Backed up {counts}" in server.command("backup", str(file))
    assert f"Restored {counts}" in copy.command("restore", str(file))

    assert manifest_of(file)["conversations"] == conversations
    assert staged_events(copy) == 0
    verified = copy.command("verify")
    assert "events are intact" in verified
    assert "staged" not in verified
