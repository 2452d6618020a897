"""Who may do what: the table of §3.7. Used by pages, the API, the socket and every action."""

from typing import Literal

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef

from conversations.core import principals
from conversations.core.errors import NotAllowed
from conversations.core.principals import SYSTEM, Principal
from conversations.core.write_transaction import in_write_transaction
from conversations.listing.sql_conditions import fetch_rows
from conversations.models import Conversation, Participant, Token, User
from conversations.models.people import ROLES

Who = User | Token | Principal | AnonymousUser
Roles = frozenset[str]
Reach = Literal["all", "inbox", "conversation"]  # of a topic: all of it, or what is not or is filed in its conversation

EVERYONE = frozenset(ROLES)
OPERATING = frozenset({"operator", "admin"})
REVIEWING = frozenset({"operator", "approver", "auditor", "admin"})
DECIDING = frozenset({"approver", "admin"})
AUDITING = frozenset({"auditor", "admin"})
ADMIN = frozenset({"admin"})
REPORTING = frozenset({"telemetry", "admin"})  # the first is a role of tokens only

# As text: every action asks one of them, and Django needs longer to write a query than the database to answer it.
_OF_USER = """SELECT r.name FROM conversations_role r JOIN conversations_user u ON u.id=r.user_id
WHERE u.username=%s AND u.is_active"""
_OF_TOKEN = "SELECT role FROM conversations_token WHERE name=%s AND revoked_at IS NULL"

# verb → roles. An agent's token is not in it: what it may depends on the target (`_own`). What is reported, of whatever
# agents, is recorded as claims: it lets nobody in (`events.projections.token_access`).
# Speaking as another and replaying unsafe calls are the admin's; others do so by a grant (`grants`).
TABLE = {
    "view": EVERYONE,
    "publish": ADMIN,
    "report": REPORTING,
    "send": OPERATING,
    "respond": OPERATING,
    "control": OPERATING,
    "annotate": REVIEWING,
    "replay": OPERATING,
    "speak": ADMIN,
    "replay_unsafe": ADMIN,
    "decide": DECIDING,
    "audit": AUDITING,
    "export": AUDITING,
    "save_views": EVERYONE,
    "reveal": AUDITING,
    "people": ADMIN,
    "tokens": ADMIN,
    "policies": ADMIN,
    "quarantine": ADMIN,
    "alerts": ADMIN,
    "metrics": ADMIN,
    "redact": ADMIN,
    "hold": ADMIN,
}
VERBS = tuple(TABLE)
WORDS = {  # of those that do not say themselves what one does
    "report": "send telemetry",
    "speak": "speak as another",
    "replay_unsafe": "replay calls with side effects",
    "decide": "decide approvals",
    "audit": "read the audit log",
    "control": "control conversations",
    "annotate": "annotate events",
    "reveal": "reveal what is masked",
    "people": "manage people",
    "tokens": "manage tokens",
    "policies": "change policies",
    "quarantine": "resolve quarantined messages",
    "alerts": "manage alerts",
    "metrics": "view operations",
    "redact": "redact the record",
    "hold": "place and release legal holds",
}
PURPOSES = {  # of each role, in a few words
    "viewer": "reads conversations and statistics",
    "operator": "also writes to agents, pauses and takes over, replays calls",
    "approver": "reads, and decides approvals",
    "auditor": "reads, also the audit log, and exports",
    "admin": "may do everything",
}


def has_permission(who: Who | Roles, verb: str, target: str = "") -> bool:
    """Return whether `who` may do `verb`. Inside `write_transaction()` roles are read afresh (law H).

    Bare roles, as an open socket keeps them, are used as they are. `target` matters only for an agent's token:
    `agent:NAME` to publish, `topic:TOPIC` or `conversation:KEY` to view.
    """
    allowed = TABLE[verb]
    held = roles_of(who)
    return not allowed.isdisjoint(held) or ("agent" in held and _own(who, verb, target))


def require(who: Who | Roles, verb: str, target: str = "") -> None:
    """Raise NotAllowed unless `who` may do `verb`. Records nothing: `action_context.audited_action` and endpoints
    do."""
    if not has_permission(who, verb, target):
        action, roles = WORDS.get(verb, verb.replace("_", " ")), " or ".join(sorted(TABLE[verb]))
        raise NotAllowed(f"{principal_of(who)} may not {action}: this requires the role {roles}")


def is_own(agent: str, name: str) -> bool:
    """Return whether a name on the wire is this agent's: `agent:X` and `X` are the same one."""
    return bool(agent) and name.removeprefix("agent:") == agent.removeprefix("agent:")


def may_speak_as(agent: str, name: str) -> bool:
    """Return whether an agent's token may publish under a name: its agent's own, or one inside it (`Desk/Triage` is of
    the program `Desk`). It may read only as its own agent."""
    return is_own(agent, name) or (bool(agent) and name.removeprefix("agent:").startswith(f"{_bare(agent)}/"))


def is_active(user: User) -> bool:
    """Return whether the account is active, as the database says now."""
    return User.objects.filter(pk=user.pk, is_active=True).exists()


def roles_of(who: Who | Roles) -> Roles:
    """Return the roles `who` holds now; `system` (a command on this machine) holds the admin's."""
    match who:
        case frozenset():
            return who
        case User():
            if in_write_transaction():
                return _roles_of_user(who.username)
            return who.role_names if who.is_active else frozenset()
        case Token():
            if in_write_transaction():
                return _roles_of_token(who.name, who.digest)
            return who.role_names
        case Principal(kind="user"):
            return _roles_of_user(who.name)
        case Principal(kind="token"):
            return _roles_of_token(who.name, who.credential)
    return ADMIN if who == SYSTEM else frozenset()


def principal_of(who: Who | Roles) -> Principal:
    """Return who that is, as the record names it. Nobody is `system`, with the address in the entry."""
    match who:
        case Principal():
            return who
        case User():
            return principals.user_principal(who.username)
        case Token():
            return principals.token_principal(who.name, who.digest)
    return SYSTEM


def _roles_of_user(name: str) -> frozenset[str]:
    return _names(_OF_USER, name)


def _roles_of_token(name: str, credential: str) -> frozenset[str]:
    """Return the role of a live token; none if the name now belongs to a token with another secret."""
    return _names(f"{_OF_TOKEN} AND digest=%s", name, credential) if credential else _names(_OF_TOKEN, name)


def _names(sql: str, *values: str) -> frozenset[str]:
    return frozenset(role for (role,) in fetch_rows(sql, values))


def _own(who: Who | Roles, verb: str, target: str) -> bool:
    """Return whether an agent's token stays with its own agent."""
    agent = agent_of(who)
    kind, _, name = target.partition(":")
    if verb == "publish":
        return kind == "agent" and may_speak_as(agent, name)
    if verb != "view" or not agent:
        return False
    return is_named_in(agent, name) if kind == "conversation" else kind == "topic" and may_follow(agent, name)


def may_follow(agent: str, topic: str) -> bool:
    """Return whether an agent's token may read a topic: its own, or of a conversation in which it was named."""
    return reach_of(agent, topic) is not None


def reach_of(agent: str, topic: str) -> Reach | None:
    """Return how much of a topic an agent's token may read; None: nothing.

    Conversation X and agent X share `chat:X` (§3.2): who may view the conversation reads what is filed there and
    not the agent's inbox, and the agent reads its inbox and not the conversation.
    """
    prefix, _, suffix = topic.partition(":")
    has_inbox = prefix in ("chat", "control") and is_own(agent, suffix)
    is_let_in = prefix in ("stream", "chat") and is_named_in(agent, suffix)
    if prefix != "chat" or has_inbox == is_let_in:
        return "all" if has_inbox or is_let_in else None
    return "inbox" if has_inbox else "conversation"


def is_named_in(agent: str, conversation: str) -> bool:
    """Return whether somebody who may let this agent in named it in a conversation (`projections.token_access`)."""
    return Conversation.objects.visible().filter(named(agent), key=conversation).exists()


def named(agent: str) -> Exists:
    """Return the filter of the conversations in which somebody who may let this agent in named it."""
    return Exists(Participant.objects.filter(conversation=OuterRef("pk"), name__in=names_of(agent), is_named=True))


def names_of(agent: str) -> tuple[str, str]:
    """Return how an agent's name may be spelled on the wire."""
    return _bare(agent), f"agent:{_bare(agent)}"


def _bare(agent: str) -> str:
    return agent.removeprefix("agent:")


def agent_of(who: Who | Roles) -> str:
    """Return the agent whom a token speaks for; empty for everybody else."""
    if isinstance(who, Principal):
        return Token.objects.filter(name=who.name, role="agent").values_list("agent", flat=True).first() or ""
    return who.agent if isinstance(who, Token) and who.role == "agent" else ""
