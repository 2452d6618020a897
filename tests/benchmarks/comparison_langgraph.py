"""A desk on LangGraph, for `comparison`: one node that adds what it is given to the messages, or waits for a decision.

`graph` is for `langgraph dev`. `python comparison_langgraph.py PORT FILE` is the plain form of the same: FastAPI before
a checkpointer on SQLite, with a stream for whoever follows a thread. Both run in an environment of their own.
"""

import asyncio
import json
import operator
import sys
from collections import defaultdict
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class Desk(TypedDict):
    """The state of a thread. `say` is the newest input, `ask` whether it needs a decision."""

    say: str
    ask: bool
    messages: Annotated[list[str], operator.add]


def _answer(state: Desk) -> dict[str, Any]:
    decision = interrupt({"call": state["say"]}) if state["ask"] else ""
    return {"messages": [f"{state['say']} {decision}"]}


builder = StateGraph(Desk)
builder.add_node("desk", _answer)
builder.add_edge(START, "desk")
builder.add_edge("desk", END)
graph = builder.compile()


async def main(port: int, file: str) -> None:
    """Serve the graph."""
    import uvicorn
    from fastapi import FastAPI
    from fastapi.responses import StreamingResponse
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    app = FastAPI()
    followers: defaultdict[str, set[asyncio.Queue[str]]] = defaultdict(set)
    async with AsyncSqliteSaver.from_conn_string(file) as saver:
        durable = builder.compile(checkpointer=saver)

        async def go_on(thread: str, given: Any) -> dict[str, Any]:
            config = {"configurable": {"thread_id": thread}}
            update: dict[str, Any] = {}
            async for update in durable.astream(given, config, stream_mode="updates", durability="sync"):
                for queue in followers[thread]:
                    queue.put_nowait(json.dumps(update, default=str))
            return {"waits": "__interrupt__" in update}

        @app.post("/threads/{thread}/runs")
        async def run(thread: str, given: dict[str, Any]) -> dict[str, Any]:
            return await go_on(thread, given)

        @app.post("/threads/{thread}/decision")
        async def decide(thread: str, given: dict[str, Any]) -> dict[str, Any]:
            return await go_on(thread, Command(resume=given["decision"]))

        @app.get("/threads/{thread}/state")
        async def state(thread: str) -> dict[str, Any]:
            snapshot = await durable.aget_state({"configurable": {"thread_id": thread}})
            return {"values": snapshot.values, "next": snapshot.next}

        @app.get("/threads/{thread}/stream")
        async def stream(thread: str) -> StreamingResponse:
            queue: asyncio.Queue[str] = asyncio.Queue()
            followers[thread].add(queue)

            async def lines() -> Any:
                try:
                    yield ": here\n\n"
                    while True:
                        yield f"data: {await queue.get()}\n\n"
                finally:
                    followers[thread].discard(queue)

            return StreamingResponse(lines(), media_type="text/event-stream")

        await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")).serve()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
