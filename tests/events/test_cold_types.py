"""msgspec fills in what it knows of a type at the type's first use, and another thread that uses it meanwhile crashes
the process. So every type is used once while its module is imported."""

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.checks.python_files import Module, modules_that_mention
from tests.support.forking import bare_nursery
from tests.support.live import ROOT

# Their functions are called while a module is imported: `Converter`, and the decorator that declares an event type.
AT_IMPORT = {"json_values.py", "event_type.py"}
ROUNDS = 3  # a process that met the types in its threads crashed in 9 of 10 rounds
# What is decoded nowhere: made here and encoded at most.
PROJECTIONS = "conversations.events.projections"
NEVER_DECODED = {
    "conversations.events.response_ids.ResponseRequest",
    f"{PROJECTIONS}.open_calls.FoldedCall",  # rows that a fold makes
    *(f"{PROJECTIONS}.row_changes.{name}" for name in ("EventFacts", "RowChanges", "TurnRow", "UsageRow", "RunRow")),
    *(f"{PROJECTIONS}.row_changes.{name}" for name in ("RunStep", "ApprovalRow", "ApprovalEnd", "ResponseRow")),
    *(f"{PROJECTIONS}.row_changes.{name}" for name in ("AnnotationRow", "AlarmCauseRow")),
    f"{PROJECTIONS}.turns._AnswerFields",  # what two decoded types have in common
    "conversations.telemetry.span_facts.SpanFacts",  # what is made of a span, field by field
    *(f"conversations.telemetry.span.{name}" for name in ("Decoded", "Span", "SpanSource")),
    *(f"conversations.telemetry.span_events.{name}" for name in ("Step", "StepPayload")),
}

LIST_UNREADY = """
import gc, importlib, pkgutil
import django
django.setup()
import msgspec, conversations, agents_app, dashboard

for package in (conversations, agents_app, dashboard):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(found.name)

def below(kind):
    for one in kind.__subclasses__():
        yield one
        yield from below(one)

for one in below(msgspec.Struct):  # a class refers to what msgspec knows of its fields as soon as it knows
    is_ready = any(type(known).__name__ == "StructInfo" for known in gc.get_referents(one))
    if not is_ready and not one.__module__.startswith("msgspec."):
        print(f"{one.__module__}.{one.__qualname__}")
"""

READ_AT_ONCE = """
import json, sys, threading
import django
django.setup()
from conversations.asgi import local_door as key
from conversations.asgi.responses import parse_request as asking, compact
from conversations.import_export.formats import switchboard as own
from conversations.import_export import import_lines
from conversations.tool_calls import tool_name_cache as tool_names

sys.setswitchinterval(0.0001)  # as a server does
text = [{"type": "input_text", "text": "x"}]
body = json.dumps({
    "model": "m", "text": {"format": {"type": "json_schema", "name": "n"}}, "reasoning": {"effort": "low"},
    "metadata": {"a": "b"}, "tools": [{"type": "function", "name": "rain"}],
    "tool_choice": {"type": "function", "name": "rain"}, "stream_options": {},
    "input": [
        {"role": "user", "content": text}, {"role": "system", "content": text},
        {"role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
        {"type": "function_call", "call_id": "c", "name": "rain", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": text},
        {"type": "reasoning", "summary": []}, {"type": "item_reference", "id": "i"},
    ],
}).encode()
THREADS = 16
begin = threading.Barrier(THREADS)
done = []

def read():
    begin.wait()
    asking.read(body)
    import_lines.line_of(b'{"end":1}')
    tool_names._hashes('{"tools":[]}')
    key._read(b'{"name":"n"}')
    done.append(1)

threads = [threading.Thread(target=read) for _ in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(done) == THREADS
"""


def run(code: str) -> "subprocess.CompletedProcess[str]":
    """Run code in an interpreter of its own, in which nothing was read before."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_every_decoded_type_is_ready_once_its_module_is_imported(tmp_path: Path) -> None:
    printed, wrong = tmp_path / "printed", tmp_path / "wrong"

    program = bare_nursery(ROOT).fork(["-c", LIST_UNREADY], env=os.environ, stdout=printed, stderr=wrong)

    assert program.wait(120) == 0, wrong.read_text()
    assert set(printed.read_text().split()) == NEVER_DECODED


@cache
def written() -> list[Module]:
    """List the modules that have to do with msgspec."""
    return modules_that_mention(ROOT, "msgspec", "Converter")


def typed_calls(module: Module) -> list[str]:
    """List the calls inside functions by which msgspec meets a type there for the first time."""
    functions = [node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    calls = {node for function in functions for node in ast.walk(function) if isinstance(node, ast.Call)}
    return [f"{module.path.relative_to(ROOT)}:{call.lineno}" for call in calls if _names_a_type(call)]


def _names_a_type(call: ast.Call) -> bool:
    called = ast.unparse(call.func)
    if called == "Converter" or (called.startswith("msgspec.") and called.endswith((".convert", ".Decoder"))):
        return True
    is_decode = called.startswith("msgspec.") and called.endswith(".decode")
    return is_decode and (len(call.args) > 1 or any(keyword.arg == "type" for keyword in call.keywords))


@pytest.mark.slow
def test_no_function_gives_msgspec_a_type() -> None:
    calls = [call for module in written() if module.path.name not in AT_IMPORT for call in typed_calls(module)]

    assert calls == []


@pytest.mark.slow
def test_msgspec_is_imported_as_a_whole() -> None:
    """`from msgspec import convert` would pass by the look at calls."""
    for module in written():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "msgspec":
                assert {alias.name for alias in node.names} <= {"Meta", "astuple"}, module.path  # which decode nothing


@pytest.mark.thorough
def test_first_requests_may_be_read_by_many_threads_at_once() -> None:
    for _ in range(ROUNDS):
        done = run(READ_AT_ONCE)
        assert done.returncode == 0, done.stderr
