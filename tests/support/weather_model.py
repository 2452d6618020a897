"""A model that has the weather looked up, then answers: by chat completions, by responses, and as Gemini. No Django."""

from __future__ import annotations

import json
from typing import Any

from tests.support.provider_server import Answer, Asked

CALL_ID, ARGUMENTS = "call_abcdefghij0123456789", '{"city":"Paris"}'


def answer_to(request: Asked) -> Answer | None:
    """Answer a request: have the weather looked up, then say it."""
    if request.path.endswith("/responses"):
        history = request.body["input"] if isinstance(request.body["input"], list) else []
        body = response(is_last=any(item.get("type") == "function_call_output" for item in history))
    elif request.path.endswith("/chat/completions"):
        body = completion(is_last=any(message["role"] == "tool" for message in request.body["messages"]))
    elif request.path.endswith(":generateContent"):
        parts = [part for content in request.body["contents"] for part in content["parts"]]
        body = gemini(is_last=any("functionResponse" in part for part in parts))
    else:
        return None
    return Answer(json.dumps(body).encode(), kind="application/json")


def completion(*, is_last: bool) -> dict[str, Any]:
    """Make an answer of Chat Completions."""
    call = {"id": CALL_ID, "type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}
    message = {"content": "Rainy."} if is_last else {"content": None, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    spent = {"prompt_tokens": 20, "completion_tokens": 3} if is_last else {"prompt_tokens": 10, "completion_tokens": 5}
    frame = {"id": f"c{is_last:d}", "object": "chat.completion", "created": 1, "model": "scripted-1"}
    return {**frame, "choices": [choice], "usage": {**spent, "total_tokens": sum(spent.values())}}


def response(*, is_last: bool) -> dict[str, Any]:
    """Make an answer of Responses."""
    text = {"type": "output_text", "text": "Rainy.", "annotations": []}
    message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [text]}
    call = {"type": "function_call", "id": "f1", "call_id": CALL_ID, "name": "get_weather", "arguments": ARGUMENTS}
    spent = {"input_tokens": 20, "output_tokens": 3} if is_last else {"input_tokens": 10, "output_tokens": 5}
    usage = {**spent, "total_tokens": sum(spent.values()), "input_tokens_details": {"cached_tokens": 0}}
    frame = {"id": f"r{is_last:d}", "object": "response", "created_at": 1, "model": "scripted-1", "tools": []}
    frame |= {"status": "completed", "parallel_tool_calls": True, "tool_choice": "auto"}
    usage["output_tokens_details"] = {"reasoning_tokens": 0}
    return {**frame, "output": [message if is_last else {**call, "status": "completed"}], "usage": usage}


def gemini(*, is_last: bool) -> dict[str, Any]:
    """Make an answer of Gemini."""
    call = {"id": CALL_ID, "name": "get_weather", "args": json.loads(ARGUMENTS)}
    part = {"text": "Rainy."} if is_last else {"functionCall": call}
    prompt, answer = (20, 3) if is_last else (10, 5)
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": answer, "totalTokenCount": prompt + answer}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-scripted"}
