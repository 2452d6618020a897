"""Static files as pages get them: under names of their content, put together, their comments cut."""

import json
from pathlib import Path

from tests.support.live import prepared


def test_everything_that_a_static_file_names_exists() -> None:
    folder = prepared() / "static"

    names = json.loads((folder / "staticfiles.json").read_text())["paths"]
    assert f'"./{Path(names["js/subscription.js"]).name}"' in (folder / names["js/socket.js"]).read_text()
    sheets = [(folder / names[f"css/{name}.css"]).read_text() for name in ("app", "page", "records")]
    assert not any("@import" in sheet or "/*" in sheet for sheet in sheets)
    assert [sheet.count(".fleet-pill {") for sheet in sheets] == [1, 0, 0]
    assert [sheet.count(".event {") > 0 for sheet in sheets] == [False, True, False]
