"""The wheel: built from a clean copy, installed in an empty environment, served from another folder."""

import re
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live import ROOT, Server

INGREDIENTS = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "templates", "static")
PACKAGES = ("dashboard", "conversations", "agents_app", "switchboard")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy without anything that was built before, with the setuptools of the lock file."""
    pytest.importorskip(
        "setuptools", minversion="77", reason="setuptools is too old: `make test` installs the locked one"
    )
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name in INGREDIENTS + PACKAGES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(built), "."]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=100)
    return next(built.glob("*.whl"))


@pytest.fixture(scope="module")
def home(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install it in an empty environment that borrows this one's dependencies: of them, only their names are proven."""
    home = tmp_path_factory.mktemp("home")
    venv.create(home, symlinks=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(home),
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        str(wheel),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=100)
    packages = next((home / "lib").glob("python*/site-packages"))
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home


class Installed(Server):
    """The console script of an environment, run from a folder that has nothing of ours in it."""

    is_newcomer = True

    def __init__(self, home: Path, folder: Path) -> None:
        super().__init__(folder / "data")
        self.home, self.folder = home, folder

    def command_line(self, *arguments: str) -> list[str]:
        """Call `switchboard` instead of `manage.py`."""
        return [str(self.home / "bin" / "switchboard"), *arguments]

    def get(self, path: str) -> str:
        """Fetch a page or a file."""
        return self.fetch(path).decode()

    def fetch(self, path: str) -> bytes:
        """Fetch a page or a file of any kind."""
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return bytes(answer.read())


@pytest.fixture(scope="module")
def server(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """Serve from the installed package."""
    installed = Installed(home, tmp_path_factory.mktemp("elsewhere"))
    installed.start()
    yield installed
    installed.terminate()


@pytest.mark.thorough
def test_installed_package_is_the_one_that_runs(server: Installed) -> None:
    output = server.command(
        "shell", "-v", "0", "-c", "import dashboard, switchboard as s; print(dashboard.__file__, s.__file__)"
    )

    assert [Path(path).is_relative_to(server.home) for path in output.split()] == [True, True]


@pytest.mark.thorough
def test_sign_in_page_comes_with_its_styles_and_sprite(server: Installed) -> None:
    page = server.get("/sign-in/")

    addresses = re.findall(r'(?:href|src)="(/static/[^"#]+)', page)
    assert {Path(address).suffix for address in addresses} >= {".css", ".js", ".svg", ".woff2"}
    assert all(server.fetch(address) for address in addresses)
    assert '<symbol id="i-logo"' in page


@pytest.mark.thorough
def test_wheel_holds_every_page_and_every_static_file(wheel: Path, home: Path) -> None:
    inside = next((home / "lib").glob("python*/site-packages/dashboard"))

    for name in ("templates", "static"):
        ours = {path.relative_to(ROOT) for path in (ROOT / name).rglob("*") if path.is_file()}
        theirs = {path.relative_to(inside) for path in (inside / name).rglob("*") if path.is_file()}
        assert theirs == ours


@pytest.mark.thorough
def test_commands_work_under_the_console_script(server: Installed) -> None:
    token = server.token()

    status, answer = server.publish(token, "stream:w", {"type": "message", "sender": "agent:A", "content": "hello"})

    assert (status, answer["seq"]) == (201, 1)
    assert "hello" in server.command("export", "w")
