"""Settings from the environment, checked at start: a wrong value ends the start and names its variable (design 3.8)."""

import os
import secrets
import sys
from pathlib import Path

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

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
    origins: str = Field(default="", description="further origins, comma separated: scheme://host[:port]")
    samples_dir: Path = Field(default=CHECKOUT.parent / "shared" / "data", description="recordings for tests")

    @field_validator("data_dir", "samples_dir")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("origins")
    @classmethod
    def _whole_origins(cls, value: str) -> str:
        for origin in filter(None, (part.strip() for part in value.split(","))):
            scheme, mark, host = origin.partition("://")
            if scheme not in ("http", "https") or not mark or not host or "/" in host:
                raise ValueError(f"expected scheme://host[:port], got {origin!r}")
        return value

    @property
    def allowed_origins(self) -> list[str]:
        """The further origins, one by one."""
        return [part.strip() for part in self.origins.split(",") if part.strip()]


def load() -> Config:
    """Read the environment; exit with one line for each wrong variable."""
    try:
        return Config()
    except ValidationError as error:
        lines = [f"SWITCHBOARD_{str(e['loc'][0]).upper()}: {e['msg']} (got {e['input']!r})" for e in error.errors()]
        sys.exit("Settings are wrong:\n  " + "\n  ".join(lines))


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
