"""Who may do what: the table of design 3.7. Pages, the API, the socket and every action ask here."""

from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, OuterRef

from conversations import principals
from conversations.errors import NotAllowed
from conversations.log.writing import is_writing
from conversations.models import Conversation, Participant, Role, Token, User
from conversations.models.people import ROLES
from conversations.principals import SYSTEM, Principal

Who = User | Token | Principal | AnonymousUser
Roles = frozenset[str]

EVERYONE = frozenset(ROLES)
OPERATING = frozenset({"operator", "admin"})
DECIDING = frozenset({"approver", "admin"})
AUDITING = frozenset({"auditor", "admin"})
ADMIN = frozenset({"admin"})

# verb → roles. An agent's token is not in it: what it may depends on the target (`_own`).
# Speaking as another and replaying unsafe calls are the admin's; others do so by a grant (`grants`).
TABLE = {
    "view": EVERYONE,
    "publish": ADMIN,
    "send": OPERATING,
    "respond": OPERATING,
    "control": OPERATING,
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
    "metrics": ADMIN,
}
VERBS = tuple(TABLE)
WORDS = {  # of those that do not say themselves what one does
    "speak": "speak as another",
    "replay_unsafe": "replay calls that have an effect",
    "decide": "decide about calls",
    "audit": "read the audit log",
    "control": "steer conversations",
    "reveal": "reveal what is masked",
    "people": "manage people",
    "tokens": "manage tokens",
    "policies": "change policies",
    "quarantine": "settle quarantined messages",
    "metrics": "see operations",
}


def may(who: Who | Roles, verb: str, target: str = "") -> bool:
    """Tell whether `who` may do `verb`. Inside `writing()` roles are read afresh (law H).

    Bare roles, as an open socket keeps them, are taken as they are. `target` matters for an agent's token only:
    `agent:NAME` to publish, `topic:TOPIC` or `conversation:KEY` to view.
    """
    allowed = TABLE[verb]
    held = roles_of(who)
    return not allowed.isdisjoint(held) or ("agent" in held and _own(who, verb, target))


def require(who: Who | Roles, verb: str, target: str = "") -> None:
    """Raise `NotAllowed` unless `who` may do `verb`. Records nothing: `actions.acting` and the edges do."""
    if not may(who, verb, target):
        words, roles = WORDS.get(verb, verb.replace("_", " ")), " or ".join(sorted(TABLE[verb]))
        raise NotAllowed(f"{principal_of(who)} may not {words}: that takes the role {roles}")


def is_own(agent: str, name: str) -> bool:
    """Tell whether a name on the wire is this agent's: `agent:X` and `X` are the same one."""
    return bool(agent) and name.removeprefix("agent:") == agent.removeprefix("agent:")


def is_active(user: User) -> bool:
    """Tell it as the database says now."""
    return User.objects.filter(pk=user.pk, is_active=True).exists()


def roles_of(who: Who | Roles) -> Roles:
    """Answer the roles `who` holds now; `system` (a command on this machine) holds the admin's."""
    match who:
        case frozenset():
            return who
        case User():
            if is_writing():
                return _roles_of_user(who.username)
            return who.role_names if who.is_active else frozenset()
        case Token():
            if is_writing():
                return _roles_of_token(who.name)
            return who.role_names
        case Principal(kind="user"):
            return _roles_of_user(who.name)
        case Principal(kind="token"):
            return _roles_of_token(who.name)
    return ADMIN if who == SYSTEM else frozenset()


def principal_of(who: Who | Roles) -> Principal:
    """Answer who that is, as the record names it. Nobody is `system`, with the address in the entry."""
    match who:
        case Principal():
            return who
        case User():
            return principals.of_user(who.username)
        case Token():
            return principals.of_token(who.name)
    return SYSTEM


def _roles_of_user(name: str) -> frozenset[str]:
    held = Role.objects.filter(user__username=name, user__is_active=True)
    return frozenset(held.values_list("name", flat=True))


def _roles_of_token(name: str) -> frozenset[str]:
    return frozenset(Token.objects.filter(name=name, revoked_at=None).values_list("role", flat=True))


def _own(who: Who | Roles, verb: str, target: str) -> bool:
    """Tell whether an agent's token stays with its own agent."""
    agent = agent_of(who)
    kind, _, name = target.partition(":")
    if verb == "publish":
        return kind == "agent" and is_own(agent, name)
    if verb != "view" or not agent:
        return False
    return is_named_in(agent, name) if kind == "conversation" else kind == "topic" and may_follow(agent, name)


def may_follow(agent: str, topic: str) -> bool:
    """Tell whether an agent's token may read a topic: its own, or of a conversation in which somebody else named it."""
    prefix, _, suffix = topic.partition(":")
    if prefix in ("chat", "control") and is_own(agent, suffix):
        return True
    return prefix in ("stream", "chat") and is_named_in(agent, suffix)


def is_named_in(agent: str, conversation: str) -> bool:
    """Tell whether somebody else named this agent in a conversation."""
    return Conversation.objects.visible().filter(named(agent), key=conversation).exists()


def named(agent: str) -> Exists:
    """Answer the filter of the conversations in which somebody else named this agent."""
    return Exists(Participant.objects.filter(conversation=OuterRef("pk"), name__in=names_of(agent), is_named=True))


def names_of(agent: str) -> tuple[str, str]:
    """Answer how an agent's name may be spelled on the wire."""
    bare = agent.removeprefix("agent:")
    return bare, f"agent:{bare}"


def agent_of(who: Who | Roles) -> str:
    """Answer the agent whom a token speaks for; empty for everybody else."""
    if isinstance(who, Principal):
        return Token.objects.filter(name=who.name).values_list("agent", flat=True).first() or ""
    return who.agent if isinstance(who, Token) else ""
