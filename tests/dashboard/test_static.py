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


def test_files_are_compressed_under_the_names_that_pages_ask_for() -> None:
    folder = prepared() / "static"

    names = json.loads((folder / "staticfiles.json").read_text())["paths"]
    texts = {name for name in names.values() if name.endswith((".js", ".css"))}
    large = {text for text in texts if (folder / text).stat().st_size > 1000}
    compressed = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.br")}
    assert large
    assert large <= compressed <= set(names.values())
    assert compressed == {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.gz")}
