"""What each format's fields become, how formats are told, and what happens to bad lines."""

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.core.errors import Invalid
from conversations.events.log import hash_chain
from conversations.import_export.detect_format import format_of, recordings
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.formats import openai_chat, switchboard, tau2, tau_display, who_when
from conversations.import_export.import_report import ImportRefused, ImportReport
from conversations.import_export.recording import encoded
from tests.support.recorded import OWN


class Told(list):
    """The reports of a reader."""

    def import_report(self, *, is_strict=False):
        return ImportReport(self.append, is_strict=is_strict)


def read(path, *, is_strict=True):
    """Read a file; return its recordings with their payloads."""
    report = Told()
    read_recordings = [
        (r.name, r.title, list(r.steps)) for r in recordings(path, report.import_report(is_strict=is_strict))
    ]
    return read_recordings, report


def payloads(path):
    return [step.payload for _, _, steps in read(path)[0] for step in steps]


def lines(tmp_path, *values, name="x.jsonl"):
    """Write lines, JSON values or texts, into a file."""
    path = tmp_path / name
    path.write_text("".join((v if isinstance(v, str) else json.dumps(v)) + "\n" for v in values))
    return path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("chat.json", openai_chat),
        ("chat.jsonl", openai_chat),
        ("chats.jsonl", openai_chat),
        ("traj.json", openai_chat),
        ("display.jsonl", tau_display),
        ("simulations.json", tau2),
        ("history_group.json", who_when),
        ("history_orchestrated.json", who_when),
    ],
)
def test_format_is_told_by_content(tmp_path, name, expected):
    plain, packed = tmp_path / "plain.txt", tmp_path / "packed.bin"
    plain.write_bytes((OWN / name).read_bytes())
    packed.write_bytes(gzip.compress((OWN / name).read_bytes()))

    assert format_of(RecordingFile(plain)) is expected
    assert format_of(RecordingFile(packed)) is expected
    assert len(read(plain)[0]) == len(read(packed)[0]) == len(read(OWN / name)[0])


@pytest.mark.parametrize("name", [path.name for path in sorted(OWN.iterdir()) if path.suffix == ".jsonl"])
def test_single_line_is_told_as_well(tmp_path, name):
    first = (OWN / name).read_text().splitlines()[0]

    ((_, _, steps),), _ = read(lines(tmp_path, first))

    assert steps


def test_openai_call_keeps_the_text_that_was_sent():
    starts = [p for p in payloads(OWN / "chat.json") if p.get("status") == "start"]

    assert [(p["args"], p["args_raw"]) for p in starts] == [
        ({"plant": "tulip", "pots": 12}, '{"plant": "tulip", "pots": 12}'),
        ({}, "not json"),
        ({}, "{}"),
    ]


def test_openai_results_join_their_calls_also_with_a_used_id():
    ends = [p for p in payloads(OWN / "chat.json") if p.get("status") in ("success", "error")]

    assert [(p["tool_call_id"], p["name"], p["status"]) for p in ends] == [
        ("c2", "find_delivery", "error"),
        ("c1", "find_delivery", "success"),
        ("c1", "find_bulbs", "success"),
    ]
    assert ends[1]["output"] == {"day": "Tuesday", "van": {"plate": "BW-7"}}


def test_openai_parts_refusals_names_and_system_words():
    envelopes = [p for p in payloads(OWN / "chat.json") if "type" in p]

    assert [(p["type"], p["sender"], p["recipient"], p["content"]) for p in envelopes] == [
        ("control", "system", "agent:assistant", "You keep the plant shop's diary."),
        ("message", "Oda", "agent:assistant", "When do the tulips arrive?"),
        ("message", "agent:assistant", "user", "On Tuesday. Shall I look at the bulbs too?"),
        ("message", "user", "agent:assistant", "Yes, like these:\n[image_url]"),
        ("message", "agent:assistant", "user", "I cannot look at pictures."),
    ]
    assert envelopes[3]["metadata"]["parts"][1]["type"] == "image_url"


def test_times_of_a_recording_become_offsets():
    ((name, _, steps),), _ = read(OWN / "chat.jsonl")

    assert name == "chat"
    assert [step.offset for step in steps] == [0.0, 2.0, 3.5, 5.0]
    assert steps[2].payload["duration_ms"] == 1500.0
    assert steps[0].payload["created_at"] == "2025-10-09T08:53:20+00:00"


def test_tau2_calls_belong_to_who_asked():
    read_recordings, _ = read(OWN / "simulations.json")

    assert [name for name, _, _ in read_recordings] == ["simulations-0a1b", "simulations-0a1c"]
    steps = [s.payload for s in read_recordings[0][2] if s.payload.get("event") == "tool_step"]
    callers = [p.get("agent") or p["sender"] for p in steps]
    assert callers == ["assistant", "assistant", "user", "user", "user", "user"]
    assert [p["name"] for p in steps[4:]] == ["restart_app", "open_app"]
    assert steps[1]["duration_ms"] == 250.0


def test_who_and_when_roles_tell_sender_and_recipient():
    bodies = payloads(OWN / "history_orchestrated.json")

    assert [(p["type"], p["sender"], p["recipient"]) for p in bodies] == [
        ("message", "human", "chat:"),
        ("control", "agent:Orchestrator", "chat:"),
        ("message", "agent:Orchestrator", "agent:WebSurfer"),
        ("message", "agent:WebSurfer", "agent:Orchestrator"),
        ("message", "agent:Orchestrator", "agent:Assistant"),
        ("message", "agent:Assistant", "agent:Orchestrator"),
        ("control", "agent:Orchestrator", "chat:"),
    ]
    assert [p["metadata"].get("about") for p in bodies if p["type"] == "control"] == [
        "thought",
        "termination condition",
    ]


def test_who_and_when_agents_go_by_name():
    bodies = payloads(OWN / "history_group.json")

    assert [p["sender"] for p in bodies][:2] == ["agent:Pond_Expert", "agent:Verification_Expert"]
    assert bodies[2]["content"] == ""


def test_display_text_keeps_its_further_lines():
    (first, _), _ = read(OWN / "display.jsonl")

    assert [s.payload.get("content") for s in first[2] if "type" in s.payload] == [
        "Please book the hall.",
        "Hall B is free:\n- 18:00\n- 20:00",
        "The later one.",
        "Somebody was quicker, sorry.",
    ]


def test_bad_lines_are_told_with_their_place_and_left_out(tmp_path):
    good = {"role": "user", "content": "hello"}
    path = lines(tmp_path, good, "{broken", '"text"', {"role": "pilot", "content": ""}, good)

    ((_, _, steps),), report = read(path, is_strict=False)

    assert len(steps) == 2
    assert [text.partition(":")[0] for text in report] == ["line 2", "line 3", "line 4"]
    assert "role must be" in report[2]


def test_bad_simulation_is_told_by_its_index(tmp_path):
    good = {
        "id": "s",
        "messages": [{"role": "user", "content": "hello"}, {"role": "tool", "id": "none", "content": ""}],
    }
    path = lines(tmp_path, {"simulations": [{"id": "bad"}, good]}, name="x.json")

    read_recordings, report = read(path, is_strict=False)

    assert [name for name, _, _ in read_recordings] == ["x-s"]
    assert report[0].startswith("simulations[0]: must be a simulation with a list of messages")
    assert report[1].startswith("simulations[1].messages[1]: must be the result of an earlier call")


@pytest.mark.parametrize("name", [path.name for path in sorted(OWN.iterdir()) if path.suffix == ".jsonl"])
def test_strict_refuses_the_first_bad_line(tmp_path, name):
    path = lines(tmp_path, *(OWN / name).read_text().splitlines(), "{broken", name=name)

    with pytest.raises(ImportRefused, match=r"line \d+: must be JSON"):
        read(path)


def test_broken_document_says_line_and_column(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"simulations": [\n  {"id": "a",]\n')

    with pytest.raises(Invalid, match="line 2 column"):
        read(path)


def test_unknown_json_names_what_is_known(tmp_path):
    with pytest.raises(Invalid, match=f"{switchboard.NAME}"):
        read(lines(tmp_path, {"weather": "rain"}, name="x.json"))


def test_empty_file_is_refused(tmp_path):
    with pytest.raises(Invalid, match="has no JSON object or list"):
        read(lines(tmp_path))


def test_broken_gzip_is_refused(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress((OWN / "chat.json").read_bytes())[:-20])

    with pytest.raises(Invalid, match="compressed file is damaged"):
        read(path)


def test_lone_surrogates_and_a_byte_order_mark_are_read(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b'\xef\xbb\xbf[{"role": "user", "content": "half \\ud83d"}]')

    assert payloads(path)[0]["content"] == "half \ud83d"


anything = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.text(max_size=2), max_size=2)
message = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"]) | anything},
    optional={
        "content": anything,
        "tool_calls": st.lists(st.fixed_dictionaries({"id": anything, "function": anything}), max_size=2) | anything,
        "tool_call_id": anything,
        "name": anything,
        "timestamp": anything,
    },
)


@settings(max_examples=50)
@given(st.lists(message | anything, max_size=6))
def test_no_message_breaks_the_readers(messages):
    report = Told()

    placed = ((str(n), value) for n, value in enumerate(messages))
    steps = list(openai_chat.steps_of(placed, report.import_report()))
    steps += tau2._steps(messages, "m", report.import_report())
    steps += who_when._steps(iter(messages), report.import_report())

    assert all(step.payload["id"] for step in steps)


numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
bodies = st.dictionaries(
    st.text(max_size=5), st.none() | numbers | st.text(max_size=5) | st.lists(numbers, max_size=3), max_size=4
)


IN_A_COLUMN = st.characters(exclude_categories=["Cs"], exclude_characters="\0")  # no id of a record has NUL


def export_of(key, texts):
    """Write the lines of an export, as another record would."""
    prev, rows = hash_chain.seed(key), []
    for seq, body in enumerate(texts, 1):
        salt = bytes([seq]) * hash_chain.SALT
        digest = hash_chain.digest(salt, body)
        prev = hash_chain.link_v1(prev, key, seq, "log", seq, "system", None, digest)
        row = {"seq": seq, "kind": "log", "at": seq, "principal": "system", "event_id": None, "body": body}
        rows.append({**row, "salt": salt.hex(), "digest": digest, "hash": prev, "erased_by": None})
    header = {"format": "switchboard/1", "conversation_id": key, "epoch": "", "head_seq": len(rows), "head_hash": prev}
    return [header, *rows]


@pytest.mark.slow
@settings(max_examples=50)
@given(st.text(IN_A_COLUMN, min_size=1, max_size=20), st.lists(bodies, min_size=1, max_size=5))
def test_bodies_of_an_export_come_back_as_they_were(key, values):
    with tempfile.TemporaryDirectory() as folder:
        path = lines(Path(folder), *export_of(key, [json.dumps(value) for value in values]))
        ((name, _, steps),), _ = read(path)

    encoded_steps = [json.loads(encoded(step.payload)) for step in steps]
    assert name == key
    assert [{k: v for k, v in value.items() if k not in ("imported", "created_at")} for value in encoded_steps] == [
        {k: v for k, v in value.items() if k not in ("imported", "created_at")} for value in values
    ]
    assert [value["imported"]["at"] for value in encoded_steps] == list(range(1, len(values) + 1))


@pytest.mark.parametrize("field", ["kind", "principal", "body", "digest", "hash", "event_id", "run", "salt"])
def test_half_a_character_in_an_export_is_told_with_its_place(tmp_path, field):
    header, first, second, third = export_of("x", ["{}", "{}", "{}"])
    path = lines(tmp_path, header, first, second | {field: "\ud83d"}, third)

    ((_, _, steps),), report = read(path, is_strict=False)

    assert len(steps) == 2
    assert "line 3: " in report[0]
    assert f"{field} contains a lone surrogate" in report[0]


def test_half_a_character_in_the_name_of_an_export_is_told(tmp_path):
    header, row = export_of("x", ["{}"])
    path = lines(tmp_path, header | {"conversation_id": "\ud83d"}, row)

    read_recordings, report = read(path, is_strict=False)

    assert read_recordings == []
    assert "line 1: " in report[0]
    assert "conversation_id contains a lone surrogate" in report[0]
