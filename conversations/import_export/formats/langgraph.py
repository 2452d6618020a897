"""LangGraph checkpoints: the SQLite database of `langgraph-checkpoint-sqlite`. Read, never run: what a value says that
it is made of (a module, a class) is a name here, nothing is imported, constructed or unpickled.

| in the file | here |
|---|---|
| `thread_id` | the conversation: its graph and the graphs within it |
| messages in `channel_values` of each checkpoint, by `id` | each once, at the time (`ts`) of the first that has it; |
| | events have ids made of thread, message `id` and part: those of pruned checkpoints stay the same |
| HumanMessage, AIMessage, SystemMessage, ToolMessage | messages, control, tool_step; `status` error: a failed call |
| AIMessage's `name`, else the node that wrote it, else the inner graph | the agent |
| `usage_metadata`, `response_metadata.model_name` | tokens |
| a message that was removed later | kept: it was said |
| pickled or encrypted values | left out and reported |

Values are msgpack or JSON as LangGraph's serializer writes them.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from conversations.core.errors import Invalid
from conversations.import_export.database import Database, Row, open_database
from conversations.import_export.fields import ConversationNames, Fields, count_field, object_of, text_field
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.import_report import ImportReport
from conversations.import_export.message_recording import RecordedMessage, recording
from conversations.import_export.recording import Recording, decoded, encoded
from conversations.telemetry import message_shapes
from conversations.telemetry.span_facts import Usage

NAME = "LangGraph checkpoints"
READS = ("database",)
_CHECKPOINTS = ("thread_id", "checkpoint_ns", "checkpoint_id", "type", "checkpoint")
_WRITES = ("thread_id", "checkpoint_id", "task_path", "type", "value")
_CLASS = "lc_class"  # what an object says that it is
_AGENT = "agent"
_INPUT = "__start__"  # a channel: what came in, before it has ids
_SINGLE, _POSITIONS, _NAMES, _METHOD, _PYDANTIC_1, _PYDANTIC_2, _ARRAY, _SNAPSHOT = range(8)  # kinds of extensions


def fits(sample: object) -> bool:
    """Return whether a database is of this format."""
    columns = sample.get("checkpoints") if isinstance(sample, dict) else None
    return isinstance(columns, tuple) and set(_CHECKPOINTS) <= set(columns)


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read one recording after another."""
    names = ConversationNames()
    with open_database(source) as database:
        thread: _Thread | None = None
        for row in database.rows("checkpoints", _CHECKPOINTS, ("thread_id", "checkpoint_id", "checkpoint_ns")):
            if thread is None or thread.id != str(row["thread_id"]):
                if thread is not None:
                    yield recording(names.of(thread.id), thread.messages, report)
                thread = _Thread(str(row["thread_id"]), _nodes(database, row["thread_id"]))
            place = f"checkpoint {row['checkpoint_id']}"
            with report.reporting(place):
                thread.take(row, place)
        if thread is not None:
            yield recording(names.of(thread.id), thread.messages, report)


class _Thread:
    """The contents of one thread's checkpoints, in order."""

    def __init__(self, thread_id: str, nodes: dict[str, str]) -> None:
        self.id = thread_id
        self.messages: list[RecordedMessage] = []
        self._nodes = nodes
        self._taken_ids: set[str] = set()

    def take(self, row: Row, place: str) -> None:
        """Add the new messages of a checkpoint. Raises Invalid for one that cannot be parsed."""
        checkpoint = object_of(_value(row["type"], row["checkpoint"]), "a checkpoint")
        channels = object_of(checkpoint.get("channel_values"), "a checkpoint with channel_values")
        graph = str(row["checkpoint_ns"] or "").rpartition("|")[2].partition(":")[0]
        for name, value in channels.items():
            for message in _messages(value) if name != _INPUT else ():
                key = text_field(message, "id") or encoded(message).decode()
                if key not in self._taken_ids:
                    self._taken_ids.add(key)
                    agent = text_field(message, "name") or self._nodes.get(key, "") or graph or _AGENT
                    self._add(message, agent, checkpoint.get("ts"), place)

    def _add(self, fields: Fields, agent: str, at: object, place: str) -> None:
        message = message_shapes.message_of(fields)
        if message is None:
            return
        own_id = text_field(fields, "id")
        ids = [call.id for call in message.calls]  # parts of the content tell calls that `tool_calls` has, too
        calls = tuple(call for n, call in enumerate(message.calls) if not call.id or call.id not in ids[:n])
        is_failed = fields.get("status") == "error"
        about = fields.get("response_metadata")
        self.messages.append(
            RecordedMessage(
                message._replace(calls=calls), agent, at, place,
                model=text_field(about, "model_name") if isinstance(about, dict) else "",
                usage=_usage(fields.get("usage_metadata")),
                failed=frozenset(result.id for result in message.results) if is_failed else frozenset(),
                id=f"{self.id}\n{own_id}" if own_id else "",
            )
        )  # fmt: skip


def _nodes(database: Database, thread_id: object) -> dict[str, str]:
    """Return which node wrote which message of a thread, as far as that is known."""
    if not set(_WRITES) <= set(database.tables().get("writes", ())):
        return {}
    nodes: dict[str, str] = {}
    for row in database.rows("writes", _WRITES, ("checkpoint_id",), of={"thread_id": thread_id}):
        node = str(row["task_path"] or "").rpartition(",")[2].strip()
        try:
            messages = list(_messages(_value(row["type"], row["value"])))
        except Invalid:
            continue  # it is in no checkpoint either, or the checkpoint tells
        if node and not node.startswith("_"):
            nodes |= {text_field(message, "id"): node for message in messages if message.get("id")}
    return nodes


def _messages(value: Any) -> Iterator[Fields]:
    items: Iterable[Any] = value if isinstance(value, list) else [value]
    return (item for item in items if isinstance(item, dict) and str(item.get(_CLASS)).endswith(("Message", "Chunk")))


def _value(kind: Any, raw: Any) -> Any:
    """Decode a serialized value. Raises Invalid for an unknown serialization."""
    if kind == "msgpack" and isinstance(raw, bytes):
        try:
            return msgspec.msgpack.decode(raw, ext_hook=_extension)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, ValueError) as error:
            raise Invalid(f"must be msgpack from LangGraph's serializer: {error}") from None
    if kind == "json" and isinstance(raw, bytes | str):
        return _constructed(decoded(raw if isinstance(raw, bytes) else raw.encode("utf-8", "replace")), 0)
    if kind in ("null", "empty"):
        return None
    raise Invalid(f"must be msgpack or JSON; {str(kind)[:40]!r} is never unpacked")


def _extension(code: int, data: memoryview) -> Any:
    """Return the contents of a serialized object as JSON; its class is only a name."""
    value = msgspec.msgpack.decode(data, ext_hook=_extension)
    if code == _SNAPSHOT:
        return value
    if code == _ARRAY or not isinstance(value, list) or len(value) < 3:
        return None
    content = value[2]
    return {**content, _CLASS: str(value[1])} if isinstance(content, dict) else content


def _constructed(value: Any, depth: int) -> Any:
    """Return JSON in which objects serialized by LangChain are replaced by their fields."""
    if depth > 100:
        raise Invalid("must be nested at most 100 levels deep")
    if isinstance(value, list):
        return [_constructed(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {name: _constructed(item, depth + 1) for name, item in value.items()}
    path, content = fields.get("id"), fields.get("kwargs")
    if "lc" in fields and isinstance(path, list) and path and isinstance(content, dict):
        return {**content, _CLASS: str(path[-1])}
    return fields


def _usage(spent: object) -> Usage:
    fields: Fields = spent if isinstance(spent, dict) else {}
    details = fields.get("input_token_details")
    of_cache = (
        [count_field(details, name) for name in ("cache_read", "cache_creation")] if isinstance(details, dict) else []
    )
    return Usage(count_field(fields, "input_tokens"), count_field(fields, "output_tokens"), *of_cache)
