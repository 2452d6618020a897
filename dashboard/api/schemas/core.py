"""The schemas of the API's requests and responses (§3.6), for the OpenAPI document and the tests that check it."""

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from conversations.events.registry import Known

Topic = Annotated[
    str, Field(pattern=r"^(stream|chat|control|signal|dlq):", max_length=208, examples=["stream:hello", "chat:Desk"])
]
Seq = Annotated[int, Field(ge=0, description="position in the conversation, from 1, without gaps")]
RowNumber = Annotated[int, Field(ge=1, le=2**53)]
"""The number of an event or an entry in a request: what all readers of JSON read alike, and a database can look up."""
Item = TypeVar("Item")


class Shape(BaseModel):
    """A response; it contains all of its fields."""

    model_config = ConfigDict(extra="forbid")


class Paged(Shape, Generic[Item]):
    """A page of items; the cursor requests the next page and is null at the end."""

    items: list[Item]
    cursor: str | None


class ErrorDetail(Shape):
    """What is wrong: `code` for programs, `message` for people, `field` if one is invalid."""

    code: str
    message: str
    field: str = ""


class Error(Shape):
    """An error."""

    error: ErrorDetail


class ToPublish(BaseModel):
    """A message to publish on the bus. `id` is the bus message's: the same id and payload again is the same message."""

    topic: Topic
    payload: Known | dict[str, Any] = Field(description="stored as sent; at most 1 MiB and 100 levels deep")
    id: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class Batch(BaseModel):
    """Several messages, each with its own result; at most 8 MiB together."""

    messages: Annotated[list[ToPublish], Field(max_length=1000)]


class HookEvent(BaseModel):
    """The data of a coding agent's hook; further fields depend on the event, see the agent's own reference of hooks."""

    model_config = ConfigDict(extra="allow")

    session_id: Annotated[str, Field(min_length=1, max_length=150)]
    hook_event_name: Annotated[str, Field(min_length=1, max_length=150)]


class HookAnswer(Shape):
    """The decision in the program's own format; absent if nobody decided, and for hooks that request none."""

    hookSpecificOutput: dict[str, Any] | None = None


class Published(Shape):
    """The message was stored. Conversation and seq are null on a topic that belongs to no conversation."""

    id: str
    conversation_id: str | None
    seq: Seq | None


class PublishedMany(Shape):
    """A result for each message, in order."""

    items: list[Published | Error]


class BusMessage(Shape):
    """A message on a topic; on `stream:` topics the id is the seq as text."""

    id: str
    topic: str
    payload: dict[str, Any]


class BusMessages(Paged[BusMessage]):
    """Messages in order; `cursor` is the last one's id."""


class Place(Shape):
    """An event of a conversation."""

    conversation_id: str
    seq: int


class ShownState(Shape):
    """The state that the list shows before a title: what needs a person, else what is going on. `state` is waiting,
    stuck, failed, running, person, paused or open."""

    state: str
    words: str


class MarkDrawn(Shape):
    """How a participant is drawn: kind (agent, person, operator, system), letters, and for agents a hue, 1 to 10, and a
    pattern that tells it from others of that hue."""

    kind: str
    letters: str
    hue: int | None
    pattern: int


class Conversation(Shape):
    """A conversation and the values computed from its events. `participants` are at most 100, the first by name."""

    conversation_id: str
    title: str
    epoch: str
    head_seq: Seq
    participants: list[str]
    has_more_participants: bool
    messages: int
    tool_calls: int
    errors: int
    state: str
    shown_state: ShownState
    owner: str
    last_activity_at: str
    forked_from: Place | None
    url: str


class Conversations(Paged[Conversation]):
    """Conversations, newest first; `cursor` is the `before` of the next page, null at the end."""


class Event(Shape):
    """An event. `at` is the time of its commit in µs UTC; values stated by the sender are null if they are not
    strings."""

    seq: Seq
    kind: str
    at: int
    created_at: str | None
    sender: str | None
    recipient: str | None
    principal: str
    event_id: str | None
    body: dict[str, Any]


class Events(Paged[Event]):
    """Events in order; `cursor` is the seq to continue from in the same direction, null at the end."""


class Marker(Shape):
    """How far a person has read a conversation."""

    conversation_id: str
    last_seq: Seq
    messages_seen: int


class Markers(Shape):
    """The markers of the requested conversations."""

    items: list[Marker]
    cursor: None


class Imported(Shape):
    """The import of one conversation of a file."""

    conversation_id: str
    events: int
    messages: int
    tool_calls: int
    errors: int


class ImportedAll(Shape):
    """All conversations of a file, which are now visible."""

    items: list[Imported]


class ToIssueLocalToken(BaseModel):
    """The name that the owner's command uses."""

    name: str


class LocalToken(Shape):
    """A token for `import:NAME`, valid while the server runs."""

    token: str


class ToPostMessage(BaseModel):
    """A message by a person. `recipient` is `agent:NAME`, or `chat:ID` for the conversation's handler. Speaking as
    another sender requires a grant and a `reason`; the envelope's `metadata` contains both, and the actual sender as
    `sent_by`."""

    sender: Annotated[str, Field(max_length=200, description="empty, your own `user:NAME`, `agent:NAME`, `system`")] = (
        ""
    )
    recipient: Annotated[str, Field(pattern=r"^(agent|chat):", max_length=206)]
    content: Annotated[str, Field(min_length=1, max_length=100_000)]
    client_id: Annotated[str, Field(min_length=1, max_length=100, description="the same id returns the same message")]
    reason: Annotated[str, Field(max_length=2000, description="reason; required to speak as another")] = ""
    seen_seq: Annotated[
        int | None,
        Field(ge=0, le=2**53, description="last event seen before writing; 409 if another person has replied since"),
    ] = None
    anyway: Annotated[bool, Field(description="send even if another person has replied since")] = False
    when: Annotated[
        Literal["after_run", "next_step"],
        Field(
            description="an agent at work gets it after its run, or at its next step: before it asks its model again"
        ),
    ] = "after_run"


class PostedMessage(Shape):
    """The message was stored; its author receives it through the socket like everybody else."""

    envelope_id: str
    seq: Seq
    url: str


class AnsweredError(ErrorDetail):
    """Who spoke, when, and in which event; only for `answered_meanwhile`."""

    did: str = ""
    by: str = ""
    at: str = ""
    seq: str = ""


class AnsweredMeanwhile(Shape):
    """Another person spoke after `seen_seq` (`answered_meanwhile`: send it again with `anyway`), or the client id was
    already used with other contents (`id_reused`)."""

    error: AnsweredError


class ToDecide(BaseModel):
    """A decision about one tool call. The message is sent to the agent, the reason is kept in the record. `respond`:
    the agent gets `output` and the tool does not run. `edit`: the call runs with `arguments`, an object or its text."""

    decision: Literal["approve", "reject", "respond", "edit"]
    output: Annotated[str, Field(max_length=262_144)] | None = None
    arguments: dict[str, Any] | Annotated[str, Field(max_length=262_144)] | None = None
    message: Annotated[str, Field(max_length=2000)] = ""
    reason: Annotated[str, Field(max_length=2000)] = ""


class ToAnswer(BaseModel):
    """The output of a client's tool, supplied by a person. The reason is kept in the record."""

    output: Annotated[str, Field(max_length=262_144)]
    reason: Annotated[str, Field(max_length=2000)] = ""


class Answered(Shape):
    """The call has its output. `response_id` is the response that continues with it, null while others wait too."""

    tool_call: str
    response_id: str | None


class Approval(Shape):
    """A request for approval of one tool call. `arguments` is the object with which it was requested, `args_raw` its
    text; secrets are masked. `ran_with` are the `arguments`, unless a person changed them with the decision
    (`changed_by`); null if those are redacted. `effect` is what the call does, by the team's code and the operators'
    policy; `decisions` are those that the requester accepts."""

    approval_id: str
    conversation_id: str
    run_id: str
    tool_call: str
    tool_call_id: str | None
    agent: str | None
    name: str | None
    namespace: str | None
    qualified_name: str | None
    lookup_key: str | None
    origin: str | None
    mcp_server: str | None
    schema_hash: Annotated[str | None, Field(alias="schema")]
    arguments: Any
    args_raw: str | None
    ran_with: Any
    changed_by: str | None
    why: str | None
    effect: str
    decisions: list[Literal["approve", "edit", "reject", "respond"]]
    asked_seq: Seq
    asked_at: str
    deadline: str | None
    on_expiry: Literal["wait", "reject", "notify"]
    notify: str | None
    escalated_to: str | None
    four_eyes: bool
    status: Literal["pending", "decided", "expired", "cancelled"]
    decision: str | None
    by: str | None
    at: str | None
    rule: str | None
    version: Seq
    url: str


class Approvals(Paged[Approval]):
    """Approval requests, newest first."""


class Decided(Shape):
    """The final decision."""

    approval_id: str
    run_id: str
    by: str
    at: str
    decision: str
    status: str


class DecidedBefore(ErrorDetail):
    """Somebody else decided first, or the request has ended: `status` is decided, cancelled or expired."""

    by: str = ""
    at: str = ""
    decision: str = ""
    status: str = ""


class AlreadyDecided(Shape):
    """An error that states who decided, when and what."""

    error: DecidedBefore


class PolicyRule(Shape):
    """A rule for calls of a tool by an agent; an empty or missing field means all of them."""

    agent: Annotated[str, Field(max_length=200)] = ""
    tool: Annotated[str, Field(max_length=401, description="its qualified name")] = ""
    rule: Literal["allow", "ask", "deny"]
    effect: Literal["", "read", "idempotent", "unsafe", "destructive"] = ""
    note: Annotated[str, Field(max_length=500)] = ""
    deadline_s: Annotated[
        int | None, Field(ge=1, le=366 * 24 * 3600, description="how long an approval request may wait")
    ] = None
    on_expiry: Literal["", "wait", "notify", "reject"] = ""
    notify: Literal["", "viewer", "operator", "approver", "auditor", "admin"] = ""
    four_eyes: bool = False
    no_always: bool = False


class PolicyFile(Shape):
    """The operators' whole policy, as `manage.py policy` prints and loads it."""

    format: Literal["switchboard-policy/1"]
    policies: Annotated[list[PolicyRule], Field(max_length=1000)]
