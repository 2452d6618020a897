"""Register and remove remote agents, in addition to those in the setting. Both actions are recorded in the audit log,
and workers follow them within seconds (`remote_team.configured_team`). URLs follow the rules of alerts."""

import re
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core import micros, outbound_address, remote_agent_setting
from conversations.core.database_clock import database_now
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.core.outbound_address import AddressRefused
from conversations.core.remote_agent_setting import RemoteAgent
from conversations.models import Agent, AgentElsewhere

TEAM = "AG-UI registered"
MAX_AGENTS = 100
MAX_DESCRIPTION, MAX_TOKEN = 1000, 2000  # characters
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.@+-]{0,99}")


@dataclass(frozen=True, slots=True)
class ListedAgent:
    """A remote agent as a page lists it: without its token, and its URL without the query."""

    name: str
    address: str
    description: str
    made_by: str
    made_at: datetime | None  # UTC; None: the setting names it
    has_token: bool
    is_served: bool

    @property
    def is_removable(self) -> bool:
        """Return whether it was registered here; an agent from the setting is removed there."""
        return self.made_at is not None


def register(by: Who, remote: RemoteAgent, *, reason: str = "") -> None:
    """Register a remote agent. Raises Invalid naming the field, Conflict if the name is taken."""
    with audited_action(by, "register_agent", f"agent:{remote.name[:100]}", right="tokens") as principal:
        _check(remote)
        if AgentElsewhere.objects.count() >= MAX_AGENTS:
            raise Invalid(f"there are already {MAX_AGENTS} remote agents; remove one first")
        if _is_taken(remote.name):
            raise Conflict(f"there is already an agent {remote.name}", field="name")
        AgentElsewhere.objects.create(**remote._asdict(), made_by=str(principal), made_at=database_now())
        chain.add_entry(
            principal, "register_agent", f"agent:{remote.name}", after=_state_of(remote), reason=reason,
            correlation={"to": address_of(remote.url)},
        )  # fmt: skip


def remove(by: Who, name: str, *, reason: str = "") -> None:
    """Remove a remote agent: no new run of it starts, and its URL and token are erased. Raises NotFound."""
    with audited_action(by, "remove_agent", f"agent:{name[:100]}", right="tokens") as principal:
        row = AgentElsewhere.objects.filter(name=name[:100]).first()
        if row is None:
            raise NotFound("this agent is no longer registered")
        before, address = _state_of(_remote(row)), address_of(row.url)
        row.delete()
        Agent.objects.filter(team=TEAM, name=row.name).delete()
        chain.add_entry(
            principal, "remove_agent", f"agent:{row.name}", before=before, reason=reason, correlation={"to": address}
        )


def delete_rows_of_removed() -> None:
    """Delete the rows of removed agents that a worker has written again in the meantime."""
    Agent.objects.filter(team=TEAM).exclude(name__in=AgentElsewhere.objects.values("name")).delete()


def registered_now() -> list[RemoteAgent]:
    """Return the registered agents, sorted by name."""
    return [_remote(row) for row in AgentElsewhere.objects.order_by("name")]


def listed() -> list[ListedAgent]:
    """Return all remote agents, those from the setting first."""
    served = set(Agent.objects.filter(served_until__gt=database_now()).values_list("name", flat=True))
    fixed = [_listed(remote, served) for remote in _of_setting()]
    rows = AgentElsewhere.objects.order_by("name")
    return [*fixed, *(_listed(_remote(r), served, r.made_by, micros.to_datetime(r.made_at)) for r in rows)]


def _listed(remote: RemoteAgent, served: set[str], by: str = "", at: datetime | None = None) -> ListedAgent:
    address, is_served = address_of(remote.url), remote.name in served
    return ListedAgent(remote.name, address, remote.description, by, at, bool(remote.token), is_served)


def address_of(url: str) -> str:
    """Return a URL without its query, which may contain a secret."""
    return url.partition("?")[0]


def _check(remote: RemoteAgent) -> None:
    """Raise Invalid for a URL that no run could reach, whatever its host name resolves to."""
    if not _NAME.fullmatch(remote.name):
        raise Invalid("must be 1 to 100 letters, digits, spaces and . _ @ + -", field="name")
    try:
        outbound_address.check_literal(outbound_address.parse(remote.url), settings.CONFIG.agui_allow_list)
    except AddressRefused as error:
        raise Invalid(str(error).replace("SWITCHBOARD_ALERT_HOSTS", "SWITCHBOARD_AGUI_HOSTS"), field="url") from None
    token = remote.token
    if len(token) > MAX_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise Invalid(f"must be at most {MAX_TOKEN:,} printable ASCII characters without spaces", field="token")
    if len(remote.description) > MAX_DESCRIPTION or not remote.description.isprintable():
        raise Invalid(f"must be one line of at most {MAX_DESCRIPTION:,} characters", field="description")


def _is_taken(name: str) -> bool:
    names = {remote.name.casefold() for remote in (*_of_setting(), *registered_now())}
    names |= {each.casefold() for each in Agent.objects.exclude(team=TEAM).values_list("name", flat=True)}
    return name.casefold() in names


def _of_setting() -> list[RemoteAgent]:
    return remote_agent_setting.read(settings.CONFIG.agui_agents.get_secret_value())


def _remote(row: AgentElsewhere) -> RemoteAgent:
    return RemoteAgent(row.name, row.url, row.token, row.description)


def _state_of(remote: RemoteAgent) -> str:
    """Return a digest of the registration, without the token."""
    return chain.digest([remote.name, remote.url, str(bool(remote.token)), remote.description])
