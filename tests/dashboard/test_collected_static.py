"""When `serve` collects static files: whenever those that are served may not be those of this version."""

import shutil

import pytest

from dashboard import interface_font
from dashboard.management.commands import serve


@pytest.fixture
def collected(tmp_path, settings, monkeypatch):
    """Return what collects as a start does, and answers how often files were collected so far; and their folder."""
    source, folder, rounds = tmp_path / "source", tmp_path / "static", []
    source.mkdir()
    (source / "app.js").write_text("1")
    settings.STATICFILES_DIRS, settings.STATIC_ROOT, settings.DATA_DIR = [source], folder, tmp_path
    monkeypatch.setattr(interface_font, "prepare", lambda: None)

    def collect(name, **options):
        rounds.append(name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if (source / "app.js").read_text() == "broken":
            raise OSError("no space")
        (folder / "staticfiles.json").write_text("{}")

    def start():
        serve.Command()._collect_static(is_alone=True)
        return len(rounds)

    monkeypatch.setattr(serve, "call_command", collect)
    return start, source, folder


def test_files_are_collected_once_while_nothing_changes(collected):
    start, _, _ = collected

    assert [start(), start()] == [1, 1]


def test_a_version_that_comes_back_after_another_one_failed_collects_again(collected):
    start, source, _ = collected
    start()
    old = shutil.copy2(source / "app.js", source.parent / "old.js")
    (source / "app.js").write_text("broken")
    with pytest.raises(OSError, match="no space"):
        start()
    shutil.copy2(old, source / "app.js")

    assert start() == 3


def test_a_folder_that_was_removed_is_collected_again(collected):
    start, _, folder = collected
    start()
    shutil.rmtree(folder)

    assert start() == 2
    assert (folder / "staticfiles.json").exists()
