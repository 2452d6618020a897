"""Static files as pages get them: under names of their content, put together, their comments cut."""

import json
from pathlib import Path
from typing import Any

from django.core.management import call_command


def test_everything_that_a_static_file_names_exists(tmp_path: Path, settings: Any) -> None:
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = settings.STORAGES | {"staticfiles": {"BACKEND": "dashboard.static_files.Storage"}}

    call_command("collectstatic", interactive=False, verbosity=0)

    names = json.loads((tmp_path / "staticfiles.json").read_text())["paths"]
    assert f'"./{Path(names["js/subscription.js"]).name}"' in (tmp_path / names["js/socket.js"]).read_text()
    sheets = [(tmp_path / names[f"css/{name}.css"]).read_text() for name in ("app", "page", "records")]
    assert not any("@import" in sheet or "/*" in sheet for sheet in sheets)
    assert [sheet.count(".fleet-pill {") for sheet in sheets] == [1, 0, 0]
    assert [sheet.count(".event {") > 0 for sheet in sheets] == [False, True, False]
