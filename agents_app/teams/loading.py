"""Find the teams to serve: `SWITCHBOARD_TEAMS` names packages, separated by commas; installed packages declare teams as
entry points of the group `switchboard.teams`; registered external AG-UI agents form a team of their own."""

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from django.conf import settings

from agents_app.teams import checks
from agents_app.teams.definition import Team, TeamError
from conversations.core import remote_agent_setting

GROUP = "switchboard.teams"


def load(names: str | None = None) -> list[Team]:
    """Import and check all teams; `names` replaces the setting. Raises TeamError."""
    team_names = settings.CONFIG.teams if names is None else names
    loaded = [_import_team(part.strip()) for part in team_names.split(",") if part.strip()]
    loaded += [_load_entry_point(point) for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)]
    teams = list({id(team): team for team in loaded}.values())
    teams += _remote_teams() if names is None else []
    for team in teams:
        checks.check(team)
    checks.check_together(teams)
    return teams


def _remote_teams() -> list[Team]:
    """Return the team of the AG-UI agents in the setting, if there are any: importing their protocol takes long."""
    remotes = remote_agent_setting.read(settings.CONFIG.agui_agents.get_secret_value())
    if not remotes:
        return []
    from agents_app.agui.remote_team import configured_team

    return [configured_team(remotes)]


def _import_team(path: str) -> Team:
    try:
        package = import_module(path)
    except ModuleNotFoundError as error:
        if error.name and (path == error.name or path.startswith(f"{error.name}.")):
            raise TeamError(f"team {path!r}: there is no such package (SWITCHBOARD_TEAMS)") from None
        raise TeamError(f"team {path!r}: it needs {error.name!r}, which is not installed") from error
    except Exception as error:  # whatever a team's own code raises while it is read: the operator is told
        raise TeamError(f"team {path!r}: {_first_line(error)}") from error
    return _team_of(path, getattr(package, "TEAM", None))


def _load_entry_point(point: Any) -> Team:
    try:
        value = point.load()
    except Exception as error:  # as above
        raise TeamError(f"team {point.value!r} (entry point {point.name!r}): {_first_line(error)}") from error
    return _team_of(point.value, getattr(value, "TEAM", value))


def _team_of(path: str, value: object) -> Team:
    if not isinstance(value, Team):
        raise TeamError(f"team {path!r}: it does not define TEAM = Team(...)")
    return value


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
