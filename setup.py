"""Put the pages inside the package: in a checkout they lie at the top, in a wheel under `dashboard/`. All else is in
pyproject.toml."""

from pathlib import Path
from shutil import copytree, rmtree

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent


class BuildWithPages(build_py):
    """Build the Python files, then copy `templates` and `static` beside them (`settings.PACKAGE_DATA`)."""

    def run(self) -> None:
        """Build; an editable installation reads the pages where they lie."""
        super().run()
        for name in () if self.editable_mode else ("templates", "static"):
            target = Path(self.build_lib, "dashboard", name)
            rmtree(target, ignore_errors=True)
            copytree(HERE / name, target)


setup(cmdclass={"build_py": BuildWithPages})
