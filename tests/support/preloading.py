"""The product's modules and templates, imported and compiled once for all the servers and commands that are forked from
one process: it is most of what their start costs. None has read a setting by then, so each process reads its own.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache

MODULES = (
    *("dashboard.urls", "dashboard.command_errors", "django.core.management.commands.migrate"),
    *("conversations.core.schema_state", "dashboard.management.commands.serve", "django.test.signals"),
    *("conversations.management.commands.token", "conversations.management.commands.user"),
    *("agents_app.worker.embedded", "agents_app.town_hall", "agents_app.agui.remote_team"),
)


class _Unread:
    """What stands for a setting while modules are imported: whoever reads it would keep the wrong value."""

    def _refuse(self, *_: Any) -> Any:
        raise AssertionError("a module reads a setting as it is imported: servers in tests would keep this one")

    __getattr__ = __bool__ = __str__ = __truediv__ = __iter__ = _refuse


def preload() -> None:
    """Import what a server consists of, with settings that nobody may read."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="switchboard-preloading-") as home:
        os.environ.update(DJANGO_SETTINGS_MODULE="dashboard.settings", SWITCHBOARD_DATA_DIR=home)
        import django
        from django.conf import settings
        from django.db.migrations.loader import MigrationLoader

        django.setup(set_prefix=False)
        for name in ("CONFIG", "DATA_DIR", "SECRET_KEY", "DATABASES", "CHANNEL_LAYERS"):
            setattr(settings, name, _Unread())
        for name in (*_composed(), *MODULES):
            importlib.import_module(name)
        MigrationLoader(None)  # imports the migrations
        templates = share_templates(before.get("SWITCHBOARD_TEST_SHARED"))
        for name in templates.list_templates():
            templates.get_template(name)
    os.environ.clear()
    os.environ.update(before)


def share_templates(shared: str | None) -> Environment:
    """Keep compiled templates in the folder of a test run, so that one of its processes compiles for all."""
    from django.template import engines

    environment: Environment = engines["jinja2"].env
    if shared:
        folder = Path(shared, "templates")
        folder.mkdir(exist_ok=True)
        environment.bytecode_cache = FileSystemBytecodeCache(str(folder))
    return environment


def settle() -> None:
    """Have this process read its environment anew: settings, connections, failpoints."""
    from django.conf import settings
    from django.db import connections

    del sys.modules["dashboard.settings"]
    anew = importlib.import_module("dashboard.settings")
    for name in filter(str.isupper, dir(anew)):  # what libraries have added to the settings stays
        setattr(settings, name, getattr(anew, name))
    connections.__dict__.pop("settings", None)
    connections.__init__()  # type: ignore[misc]  # as it was before the settings
    importlib.reload(sys.modules["conversations.core.failpoints"])


def _composed() -> list[str]:
    """Return what the composition root imports at its top; itself it reads settings there."""
    source = Path(importlib.import_module("dashboard").__path__[0], "asgi.py").read_text()
    return [node.module for node in ast.parse(source).body if isinstance(node, ast.ImportFrom) and node.module]
