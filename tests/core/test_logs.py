"""Log lines: ids where they are known, secrets nowhere."""

import io
import json
import logging

import pytest

from conversations.core import log_format

PLANTED = (
    "Authorization: Bearer sb_Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4",
    "the key is sk-proj-abcDEF123456_7890",
    "cannot reach postgresql://switchboard:hunter2secret@db.example:5432/main",
    "redis://:hunter2secret@cache.example/0 hangs up",
    "GET /sign-in/link/?t=c2VjcmV0LWxpbmstdG9rZW4 failed",
    "password=hunter2secret and more",
    "{'api_key': 'hunter2secret'}",
    "Cookie: switchboard_session=hunter2secret; other=1",
)
SECRETS = ("sb_Zm9v", "abcDEF", "hunter2secret", "c2VjcmV0")


@pytest.fixture(params=["text", "json"])
def lines(request):
    """A logger as the settings make it; answers what it wrote."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(log_format.MaskingFilter())
    handler.setFormatter(log_format.TextFormatter() if request.param == "text" else log_format.JsonFormatter())
    logger = logging.getLogger(f"tests.logs.{request.param}")
    logger.propagate = False
    logger.handlers = [handler]
    yield logger, stream.getvalue, request.param
    logger.handlers = []


@pytest.mark.parametrize("planted", PLANTED)
def test_no_secret_is_written(lines, planted):
    logger, written, _ = lines

    logger.error(planted)
    logger.error("as an argument: %s", planted)
    try:
        raise ValueError(planted)
    except ValueError:
        logger.exception("it broke")

    assert written().count("it broke") == 1
    assert "ValueError" in written()
    assert not any(secret in written() for secret in SECRETS)


def test_what_is_no_secret_stays(lines):
    logger, written, _ = lines

    logger.error("task skipped at http://127.0.0.1:8000/conversations/a/?t2=1, token count: see below")

    assert "http://127.0.0.1:8000/conversations/a/?t2=1" in written()
    assert "task skipped" in written()


def test_ids_are_on_every_line(lines):
    logger, written, how = lines

    with log_format.log_context(request="r-1"):
        logger.error("first", extra={"conversation": "a b\n"})
        with log_format.log_context(run="run-7"):
            logger.error("second", extra={"call": "call-9"})
    logger.error("third")

    first, second, third = written().splitlines()
    if how == "json":
        assert json.loads(first)["conversation"] == "a_b_"
        assert json.loads(second) | {"request": "r-1", "run": "run-7", "call": "call-9"} == json.loads(second)
        assert "request" not in json.loads(third)
    else:
        assert first.endswith("first request=r-1 conversation=a_b_")
        assert second.endswith("second request=r-1 run=run-7 call=call-9")
        assert third.endswith("third")


def test_a_whole_request_is_no_id(lines):
    logger, written, _ = lines

    with log_format.log_context(request="r-1"):
        logger.error("not found", extra={"request": object()})
    logger.error("not found either", extra={"request": object()})

    assert "r-1" in written().splitlines()[0]
    assert "object" not in written()


def test_json_is_one_object_a_line_with_its_traceback(lines):
    logger, written, how = lines

    try:
        raise KeyError("x")
    except KeyError:
        logger.exception("it\nbroke")

    if how == "json":
        (line,) = written().splitlines()
        assert "Traceback" in json.loads(line)["exception"]
    else:
        assert "Traceback" in written()


def test_what_a_stranger_said_begins_no_line_and_moves_no_cursor(lines):
    logger, written, _ = lines

    logger.error("no host %s", "x\n2026-11-22 ERROR fake\r\x1b[2J\x9b31m\u2028end")

    assert written().count("\n") == 1
    assert not set(written()) & set("\r\x1b\x9b\u2028")
