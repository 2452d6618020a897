"""The interface's font: cut from its package once, named by the sheet of every page, left out where it is missing."""

import logging
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from dashboard import interface_font
from tests.support.tiers import variants

STORAGES = {"staticfiles": {"BACKEND": "dashboard.static_files.Storage"}}


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment whose font is not cut yet."""
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_each_file_draws_the_letters_of_its_range(prefix: Path) -> None:
    from fontTools.subset import parse_unicodes
    from fontTools.ttLib import TTFont

    assert not interface_font.is_ready()
    interface_font.prepare()

    assert interface_font.is_ready()
    for name, ranges in interface_font.UNICODE_RANGES.items():
        with TTFont(interface_font.folder() / name) as font:
            wanted = set(parse_unicodes(ranges.replace("U+", "")))
            assert set(font.getBestCmap()) <= wanted
            assert len(wanted - set(font.getBestCmap())) <= 2  # Inter draws no soft hyphen
            assert [(axis.axisTag, axis.minValue, axis.maxValue) for axis in font["fvar"].axes] == [("wght", 400, 600)]
    assert (interface_font.folder() / interface_font.LATIN).stat().st_size < 16_000
    assert interface_font.folder().is_relative_to(prefix)
    assert len(list(interface_font.folder().iterdir())) == 2


def test_what_is_there_is_not_made_again(prefix: Path) -> None:
    interface_font.folder().mkdir(parents=True)
    for name in interface_font.UNICODE_RANGES:
        (interface_font.folder() / name).write_bytes(b"kept")

    interface_font.prepare()

    assert {(interface_font.folder() / name).read_bytes() for name in interface_font.UNICODE_RANGES} == {b"kept"}


@pytest.mark.slow
def test_pages_do_without_where_it_cannot_be_made(
    prefix: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(interface_font, "_PACKAGE", "no_such_font")

    with caplog.at_level(logging.WARNING):
        interface_font.prepare()

    assert not interface_font.is_ready()
    assert "no_such_font is not installed" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("has_font", variants([True, False]))
def test_the_sheet_of_every_page_names_it_where_it_is_there(has_font: bool, tmp_path: Path, settings: Any) -> None:
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = settings.STORAGES | STORAGES
    if has_font:
        interface_font.prepare()
    else:
        settings.STATICFILES_DIRS = settings.STATICFILES_DIRS[:1]

    call_command("collectstatic", interactive=False, verbosity=0)

    sheet = next(path for path in (tmp_path / "css").glob("app.*.css") if len(path.name) > len("app.css")).read_text()
    named = [str(path.relative_to(tmp_path)) for path in (tmp_path).glob("fonts/*.*.woff2")]
    assert sheet.count("@font-face") == len(named) == (2 if has_font else 0)
    assert all(f'url("../{path}")' in sheet for path in named)
