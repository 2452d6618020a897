"""Settings from the environment, checked at start: a wrong value ends the start and names its variable (§3.8)."""

import ipaddress
import os
import re
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from conversations.core import model_prices, remote_agent_setting
from conversations.core.errors import Invalid
from conversations.core.model_prices import ModelPrice
from conversations.core.outbound_address import AllowList
from conversations.evidence import witness_settings
from conversations.evidence.witness_settings import Witness
from dashboard import databases
from dashboard.config_values import (
    describe_error,
    expect_file,
    expect_networks,
    expect_origins,
    expect_redis,
    expect_scheme,
    expect_sender,
    hostname_of,
    pairs_of,
    parts_of,
    variable_name,
)

if TYPE_CHECKING:
    from conversations.evidence.notes import VerifierKey

MIN_SECRET = 32  # characters
CENTURY_S = 36_500 * 86_400  # what a time is counted from or to stays in what a column holds
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token of HTTP
_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")
CHECKOUT = Path(__file__).resolve().parent.parent


def _home() -> Path:
    """Keep the data beside a checkout, else where the system keeps a user's data."""
    if (CHECKOUT / "manage.py").exists():
        return CHECKOUT / "data"
    return Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share")) / "switchboard"


class Config(BaseModel):
    """What an operator can set. Every name has the prefix `SWITCHBOARD_` in the environment."""

    model_config = ConfigDict(allow_inf_nan=False, validate_default=True)
    # Django asks this of a setting's value each time it is read; where it is missing, pydantic searches for 8 µs.
    _mask_wrapped: ClassVar[bool] = True

    data_dir: Path = Field(
        default_factory=_home, description="directory for the database, the secret key and the lock file"
    )
    secret_key: str = Field(
        default="", description="signs sessions; generated and stored in the data directory if empty"
    )
    database_url: str = Field(
        default="", description="postgresql://user:password@host:port/name; SQLite in the data directory if empty"
    )
    redis_url: str = Field(
        default="", description="redis://host:port/db: bus for external agents and notifications between processes"
    )
    origins: str = Field(default="", description="additional allowed origins, comma-separated: scheme://host[:port]")
    proxies: str = Field(
        default="", description="trusted proxies (addresses or networks) whose X-Forwarded-For is used, comma-separated"
    )
    sockets_per_principal: int = Field(default=1000, ge=1, description="maximum open sockets per principal and process")
    topics_per_principal: int = Field(
        default=10_000, ge=1, description="maximum topics followed by those sockets together"
    )
    polls_per_principal: int = Field(default=1000, ge=1, description="maximum waiting topic reads per principal")
    responses_per_principal: int = Field(
        default=1000, ge=1, description="maximum open /v1/responses requests and sockets per principal and process"
    )
    response_wait_s: float = Field(
        default=300, gt=0, description="seconds a /v1/responses client waits for a response without progress"
    )
    rings_mib: int = Field(default=48, ge=1, description="MiB of recent events each process caches for open pages")
    followers_mib: int = Field(default=64, ge=1, description="MiB each process buffers for /v1/responses clients")
    signing_key: Path | None = Field(
        default=None,
        description="file with the keys that sign the record, apart from database and backups; made where it is"
        " missing; keys/checkpoint-key.json in the data directory if empty",
    )
    record_name: str = Field(
        default="", description="name of the record in its checkpoints, such as example.com/record; generated if empty"
    )
    witnesses: str = Field(
        default="",
        description="witnesses that store checkpoints, comma-separated: file:/PATH, command:WORDS, timestamp:URL (RFC"
        " 3161), or the URL of a C2SP witness",
    )
    witness_keys: str = Field(default="", description="verifier keys of C2SP witnesses, comma-separated")
    log: Literal["", "text", "json"] = Field(
        default="", description="log format, text or json; if empty, text on a terminal and json elsewhere"
    )
    samples_dir: Path = Field(default=CHECKOUT.parent / "shared" / "data", description="recordings for tests")

    teams: str = Field(default="agents_app.town_hall", description="team packages to run, comma-separated")
    model: str = Field(
        default="", description="the agents' model: `responses:NAME`, `chat:NAME`, or `demo` for the built-in one"
    )
    model_api: Literal["", "responses", "chat"] = Field(
        default="", description="API to use for models named without one"
    )
    model_timeout_s: float = Field(default=180, gt=0, description="maximum seconds for a complete model answer")
    model_silence_s: float = Field(default=60, gt=0, description="maximum seconds without data from the model server")
    model_retries: int = Field(default=2, ge=0, le=10, description="retries of a failed model request")
    model_turn_bytes: int = Field(default=4 << 20, ge=1024, description="maximum bytes of one model answer")
    model_run_bytes: int = Field(default=32 << 20, ge=1024, description="maximum bytes of all model answers in a run")
    demo_pace_s: float = Field(
        default=0.02, ge=0, le=5, description="seconds the demo model waits between chunks of text"
    )
    run_s: float = Field(default=600, gt=0, description="maximum seconds a run may work without pausing")
    runs_per_team: int = Field(default=100, ge=1, description="maximum concurrent runs per team and worker")
    stop_s: float = Field(
        default=5, ge=0, le=86_400, description="seconds that runs may continue after their worker is asked to stop"
    )
    late_s: float = Field(default=10, gt=0, description="seconds until a message that no agent picked up is flagged")
    stuck_same_calls: int = Field(default=5, ge=2, description="identical calls after which a run looks stuck")
    stuck_silence_s: float = Field(
        default=180, gt=0, description="seconds without progress after which a run looks stuck"
    )
    stuck_turns_left: int = Field(default=2, ge=0, description="remaining turns at which a run is flagged; 0 for never")
    approval_s: float = Field(
        default=0, ge=0, le=CENTURY_S, description="seconds until an approval request expires; 0 for no deadline"
    )
    approval_expiry: Literal["wait", "reject", "notify"] = Field(
        default="wait", description="what happens then: keep waiting, reject the call, or notify a role"
    )
    approval_role: Literal["viewer", "operator", "approver", "auditor", "admin"] = Field(
        default="admin", description="the role to notify"
    )
    four_eyes: bool = Field(
        default=False,
        description="people cannot decide on a run whose input they wrote or sent, or asked an agent to send",
    )
    redaction_four_eyes: bool = Field(
        default=False, description="a second admin confirms each redaction and each retention rule"
    )
    retention_every_s: float = Field(default=86_400, gt=0, description="seconds between rounds of the retention rules")
    session_items: int = Field(default=200, ge=1, le=1_000_000, description="conversation items that agents remember")
    session_days: float = Field(
        default=30, gt=0, le=CENTURY_S / 86_400, description="days that agents remember an item"
    )
    alert_hosts: str = Field(
        default="",
        description="hosts, addresses or networks that are not public and that alerts may reach, comma-separated",
    )
    alert_timeout_s: float = Field(default=10, gt=0, le=30, description="maximum seconds for one attempt of an alert")
    alert_retry_s: float = Field(
        default=5, gt=0, le=3600, description="seconds until a failed alert is sent again; doubled each time, up to 1 h"
    )
    email_url: str = Field(
        default="",
        description="mail server for alerts: smtp://user:password@host:port, smtps:// for TLS from the start",
    )
    email_from: str = Field(default="switchboard@localhost", description="sender of alerts by e-mail")
    otlp_endpoint: str = Field(
        default="",
        description="OpenTelemetry collector (OTLP/HTTP) that gets a trace of every run: http://host:4318",
    )
    otlp_headers: str = Field(
        default="", description="headers of those requests, comma-separated: name=value, percent-encoded"
    )
    otlp_content: bool = Field(
        default=False, description="include messages, arguments and outputs, not only names, times and token counts"
    )
    otlp_timeout_s: float = Field(default=10, gt=0, le=60, description="maximum seconds for an answer of the collector")
    agui_agents: SecretStr = Field(
        default=SecretStr(""),
        description='remote AG-UI agents, as JSON: {"NAME": {"url": "https://…", "token": "…"}}',
    )
    agui_hosts: str = Field(
        default="", description="hosts, addresses or networks that are not public and that may serve them"
    )
    prices: Path | None = Field(
        default=None, description="JSON file of model prices that override the built-in list (how-to: operate)"
    )
    openai_api_key: SecretStr = Field(default=SecretStr(""), validation_alias="OPENAI_API_KEY")
    openai_base_url: str = Field(
        default="",
        validation_alias="OPENAI_BASE_URL",
        description="base URL of an OpenAI-compatible API, ending in /v1",
    )

    @field_validator("openai_base_url", "otlp_endpoint")
    @classmethod
    def _http(cls, value: str) -> str:
        return expect_scheme(value, "http", "https")

    @field_validator("otlp_headers")
    @classmethod
    def _headers(cls, value: str) -> str:
        if not all(_HEADER.fullmatch(name) and _VALUE.fullmatch(text) for name, text in pairs_of(value)):
            raise PydanticCustomError(
                "headers", "must be name=value, comma-separated; a value is printable ASCII, percent-encoded"
            )
        return value

    @field_validator("data_dir", "samples_dir", "signing_key", "prices", "email_from", mode="before")
    @classmethod
    def _not_empty(cls, value: object, info: ValidationInfo) -> object:
        """Read an empty variable, as files of variables have it, as one that is not set."""
        field = cls.model_fields[info.field_name or ""]
        return field.get_default(call_default_factory=True, validated_data={}) if value == "" else value

    @field_validator("data_dir", "samples_dir", "signing_key", "prices")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return value and value.expanduser().absolute()

    @field_validator("database_url")
    @classmethod
    def _postgresql(cls, value: str) -> str:
        if value and not value.startswith(("postgresql://", "postgres://")):
            raise PydanticCustomError("address", "must be postgresql://host[:port]/name")
        try:  # no host in the address: `?host=` names it, or libpq's default socket serves
            is_named = not value or databases.postgresql(value)["NAME"]
        except Exception:  # libpq's own words may repeat the password
            raise PydanticCustomError(
                "address", "must be an address that PostgreSQL's client library accepts"
            ) from None
        if not is_named:
            raise PydanticCustomError("address", "must be postgresql://host[:port]/name: the database name is missing")
        return value

    @field_validator("redis_url")
    @classmethod
    def _redis(cls, value: str) -> str:
        return expect_redis(value)

    @field_validator("email_from")
    @classmethod
    def _sender(cls, value: str) -> str:
        return expect_sender(value)

    @field_validator("signing_key")
    @classmethod
    def _key_file(cls, value: Path | None) -> Path | None:
        return value and expect_file(value)

    @model_validator(mode="after")
    def _secret_is_shared(self) -> Self:
        """Several processes may share a database, so they have to be given one secret."""
        if self.database_url and not self.secret_key:
            raise PydanticCustomError("secret", "SWITCHBOARD_SECRET_KEY is required with SWITCHBOARD_DATABASE_URL")
        return self

    @field_validator("secret_key")
    @classmethod
    def _hard_to_guess(cls, value: str) -> str:
        """Sessions, links and the name of the broadcast are signed with it: a short one can be tried out."""
        if value and (length := len(value.strip())) < MIN_SECRET:
            raise PydanticCustomError("secret", f"must be at least {MIN_SECRET} characters; got {length}")
        return value

    @field_validator("proxies")
    @classmethod
    def _networks(cls, value: str) -> str:
        return expect_networks(value)

    @field_validator("origins")
    @classmethod
    def _whole_origins(cls, value: str) -> str:
        return expect_origins(value)

    @field_validator("alert_hosts", "agui_hosts")
    @classmethod
    def _destinations(cls, value: str) -> str:
        AllowList.of(parts_of(value))
        return value

    @field_validator("agui_agents")
    @classmethod
    def _remote_agents(cls, value: SecretStr) -> SecretStr:
        remote_agent_setting.read(value.get_secret_value())
        return value

    @field_validator("record_name")
    @classmethod
    def _log_name(cls, value: str) -> str:
        if len(value.encode()) > 200 or "+" in value or any(c.isspace() or c < " " for c in value):
            raise ValueError("must be at most 200 characters, without spaces or plus signs")
        return value

    @field_validator("witnesses")
    @classmethod
    def _known_witnesses(cls, value: str) -> str:
        for part in parts_of(value):
            witness_settings.parse(part)
        return value

    @field_validator("witness_keys")
    @classmethod
    def _known_keys(cls, value: str) -> str:
        try:
            witness_settings.parse_keys(parts_of(value))
        except Invalid as error:
            raise ValueError(error.message) from None
        return value

    @field_validator("prices")
    @classmethod
    def _prices(cls, value: Path | None) -> Path | None:
        if value is not None:
            model_prices.read_file(value)
        return value

    @field_validator("email_url")
    @classmethod
    def _smtp(cls, value: str) -> str:
        return expect_scheme(value, "smtp", "smtps")

    @cached_property
    def alert_allow_list(self) -> AllowList:
        """Where alerts may be sent although it is not public."""
        return AllowList.of(parts_of(self.alert_hosts))

    @cached_property
    def otlp_header_fields(self) -> dict[str, str]:
        """What every request to the collector says beside its content."""
        return dict(pairs_of(self.otlp_headers))

    @cached_property
    def agui_allow_list(self) -> AllowList:
        """Where remote agents may be although it is not public."""
        return AllowList.of(parts_of(self.agui_hosts))

    @property
    def signing_key_path(self) -> Path:
        """Where the keys that sign the record are."""
        return self.signing_key or self.data_dir / "keys" / "checkpoint-key.json"

    @property
    def witness_list(self) -> list[Witness]:
        """Who else keeps checkpoints."""
        return witness_settings.parse_all(parts_of(self.witnesses))

    @property
    def witness_key_list(self) -> "list[VerifierKey]":
        """Whose signatures count as a witness's."""
        return witness_settings.parse_keys(parts_of(self.witness_keys))

    @cached_property
    def price_table(self) -> Mapping[str, ModelPrice]:
        """The operator's prices by model."""
        return model_prices.read_file(self.prices) if self.prices else {}

    @property
    def log_format(self) -> Literal["text", "json"]:
        """How log lines look."""
        return self.log or ("text" if sys.stderr.isatty() else "json")

    @property
    def allowed_origins(self) -> list[str]:
        """The further origins, one by one."""
        return parts_of(self.origins)

    @property
    def trusted_proxies(self) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
        """Where requests may come from that tell of their client by X-Forwarded-For."""
        return [ipaddress.ip_network(part) for part in parts_of(self.proxies)]

    @property
    def allowed_hosts(self) -> list[str]:
        """The hosts of the further origins, as Django compares them: no port, IPv6 in brackets."""
        return [f"[{host}]" if ":" in host else host for host in map(hostname_of, self.allowed_origins)]


def load() -> Config:
    """Read the environment; exit with one line for each wrong variable."""
    try:
        return Config.model_validate({name: os.environ[key] for key, name in variables().items() if key in os.environ})
    except ValidationError as error:
        sys.exit("Invalid settings:\n  " + "\n  ".join(map(describe_error, error.errors())))


def variables() -> dict[str, str]:
    """Return the name of each setting by its variable."""
    names = [str(field.validation_alias or name) for name, field in Config.model_fields.items()]
    return {variable_name(name): name for name in names}
