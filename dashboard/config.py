"""Settings from the environment, checked at start: a wrong value ends the start and names its variable (design 3.8)."""

import ipaddress
import os
import secrets
import sys
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

from dashboard import databases

SECRETS = ("secret_key", "database_url", "redis_url", "OPENAI_API_KEY", "OPENAI_BASE_URL")
LEAST_SECRET = 32  # characters
CHECKOUT = Path(__file__).resolve().parent.parent


def _home() -> Path:
    """Keep the data beside a checkout, else where the system keeps a user's data."""
    if (CHECKOUT / "manage.py").exists():
        return CHECKOUT / "data"
    return Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share")) / "switchboard"


class Config(BaseSettings):
    """What an operator can set. Every name has the prefix `SWITCHBOARD_` in the environment."""

    model_config = SettingsConfigDict(env_prefix="SWITCHBOARD_", extra="ignore")

    data_dir: Path = Field(default_factory=_home, description="where the database, the secret and the lock live")
    secret_key: str = Field(default="", description="signs sessions; made and kept in the data directory when empty")
    database_url: str = Field(
        default="", description="postgresql://user:password@host:port/name; empty: SQLite in data_dir"
    )
    redis_url: str = Field(default="", description="redis://host:port/db, the foreign agents' bus and the doorbell")
    origins: str = Field(default="", description="further origins, comma separated: scheme://host[:port]")
    proxies: str = Field(
        default="", description="addresses or networks whose X-Forwarded-For is believed, comma separated"
    )
    sockets_per_principal: int = Field(default=1000, ge=1, description="open sockets of one principal in one process")
    topics_per_principal: int = Field(default=10_000, ge=1, description="topics that all these follow together")
    log: Literal["", "text", "json"] = Field(
        default="", description="text or json lines; empty: text on a terminal, else json"
    )
    samples_dir: Path = Field(default=CHECKOUT.parent / "shared" / "data", description="recordings for tests")

    teams: str = Field(default="agents_app.town_hall", description="packages of teams served here, comma separated")
    model: str = Field(default="", description="the agents' model, `responses:name` or `chat:name`; `demo`: built in")
    model_api: Literal["", "responses", "chat"] = Field(default="", description="the API of models that name none")
    model_timeout_s: float = Field(default=180, gt=0, description="the longest a whole answer may take")
    model_silence_s: float = Field(default=60, gt=0, description="the longest a model's server may send nothing")
    model_retries: int = Field(default=2, ge=0, le=10, description="further tries of a failed model request")
    demo_pace_s: float = Field(default=0.02, ge=0, le=5, description="the demo model's wait between two pieces of text")
    run_s: float = Field(default=600, gt=0, description="the longest a run may take between two waits, in seconds")
    runs_per_team: int = Field(default=100, ge=1, description="runs of a team at a time in one worker")
    stop_s: float = Field(default=5, ge=0, description="how long running runs may go on when a worker stops")
    late_s: float = Field(default=10, gt=0, description="what is said and not begun with for so long is told as such")
    stuck_same_calls: int = Field(default=5, ge=2, description="the same call so many times in a run looks stuck")
    stuck_silence_s: float = Field(default=180, gt=0, description="a run without progress for so long looks stuck")
    stuck_turns_left: int = Field(default=2, ge=0, description="turns before its limit at which a run warns; 0: never")
    approval_s: float = Field(
        default=0, ge=0, description="how long a question may wait until its time is up; 0: for ever"
    )
    approval_expiry: Literal["wait", "reject", "notify"] = Field(
        default="wait", description="then: it keeps waiting, the call is not made, or a role is told"
    )
    approval_role: str = Field(default="admin", description="the role that is told")
    four_eyes: bool = Field(default=False, description="nobody decides on a run whose input they wrote or sent")
    session_items: int = Field(default=200, ge=1, description="items of a conversation that agents remember")
    session_days: float = Field(default=30, gt=0, description="how long agents remember an item")
    openai_api_key: SecretStr = Field(default=SecretStr(""), validation_alias="OPENAI_API_KEY")
    openai_base_url: str = Field(default="", validation_alias="OPENAI_BASE_URL", description="an OpenAI-compatible /v1")

    @field_validator("openai_base_url")
    @classmethod
    def _http(cls, value: str) -> str:
        return _expect(value, "http", "https")

    @field_validator("data_dir", "samples_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("database_url")
    @classmethod
    def _postgresql(cls, value: str) -> str:
        _expect(value, "postgresql", "postgres")
        try:
            is_named = not value or databases.postgresql(value)["NAME"]
        except Exception:  # libpq's own words may repeat the password
            raise PydanticCustomError("address", "it is no address that PostgreSQL's library can read") from None
        if not is_named:
            raise PydanticCustomError("address", "expected postgresql://host[:port]/name: which database?")
        return value

    @field_validator("redis_url")
    @classmethod
    def _redis(cls, value: str) -> str:
        return _expect(value, "redis", "rediss")

    @model_validator(mode="after")
    def _secret_is_shared(self) -> Self:
        """Several processes may share a database, so they have to be given one secret."""
        if self.database_url and not self.secret_key:
            raise PydanticCustomError("secret", "SWITCHBOARD_SECRET_KEY is required with SWITCHBOARD_DATABASE_URL")
        return self

    @field_validator("secret_key")
    @classmethod
    def _hard_to_guess(cls, value: str) -> str:
        """Sessions, links and the doorbell's name are signed with it: a short one can be tried out."""
        if value and len(value) < LEAST_SECRET:
            raise PydanticCustomError("secret", f"expected at least {LEAST_SECRET} characters, got {len(value)}")
        return value

    @field_validator("proxies")
    @classmethod
    def _networks(cls, value: str) -> str:
        for part in _parts(value):
            try:
                ipaddress.ip_network(part)
            except ValueError as error:
                raise ValueError(f"expected an address or a network like 10.0.0.0/8: {error}") from None
        return value

    @field_validator("origins")
    @classmethod
    def _whole_origins(cls, value: str) -> str:
        for origin in _parts(value):
            scheme, mark, host = origin.partition("://")
            if scheme not in ("http", "https") or not mark or "/" in host or not _hostname(origin):
                raise ValueError(f"expected scheme://host[:port], got {origin!r}")
        return value

    @property
    def log_format(self) -> Literal["text", "json"]:
        """How log lines look."""
        return self.log or ("text" if sys.stderr.isatty() else "json")

    @property
    def allowed_origins(self) -> list[str]:
        """The further origins, one by one."""
        return _parts(self.origins)

    @property
    def trusted_proxies(self) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
        """Where requests may come from that tell of their client by X-Forwarded-For."""
        return [ipaddress.ip_network(part) for part in _parts(self.proxies)]

    @property
    def allowed_hosts(self) -> list[str]:
        """The hosts of the further origins, as Django compares them: no port, IPv6 in brackets."""
        hosts = map(_hostname, self.allowed_origins)
        return [f"[{host}]" if ":" in host else host for host in hosts]


def _parts(value: str) -> list[str]:
    """Cut a list at its commas."""
    return [part.strip() for part in value.split(",") if part.strip()]


def _hostname(origin: str) -> str:
    """Answer the host of an origin; empty when there is none that can be read."""
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


def _expect(url: str, *schemes: str) -> str:
    """Refuse an address of another kind, or one without a host. The address itself may hold a password: never said."""
    parts = urlsplit(url)
    if url and (parts.scheme not in schemes or not parts.hostname):
        raise PydanticCustomError("address", f"expected {schemes[0]}://host[:port]/name, got {parts.scheme or '?'}://…")
    return url


def load() -> Config:
    """Read the environment; exit with one line for each wrong variable."""
    try:
        return Config()
    except ValidationError as error:
        sys.exit("Settings are wrong:\n  " + "\n  ".join(map(_line, error.errors())))


def _line(error: ErrorDetails) -> str:
    """Name the variable; a value is repeated unless it may hold a secret."""
    if not error["loc"]:
        return error["msg"]
    name = str(error["loc"][0])
    got = "" if name in SECRETS else f" (got {error['input']!r})"
    variable = name if name.isupper() else f"SWITCHBOARD_{name.upper()}"
    return f"{variable}: {error['msg']}{got}"


def secret_key(config: Config) -> str:
    """Answer the configured secret, else the one kept in the data directory (made once, mode 0600)."""
    if config.secret_key:
        return config.secret_key
    path = config.data_dir / "secret"
    config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(descriptor, "w") as file:
        secret = secrets.token_urlsafe(48)
        file.write(secret)
    return secret
