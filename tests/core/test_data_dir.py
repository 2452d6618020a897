"""Which process holds a data directory."""

import pytest

from conversations.core import data_dir
from conversations.core.errors import Unavailable


def test_looking_who_holds_a_directory_finds_a_holder_and_is_none(tmp_path):
    data_dir.require_unheld(tmp_path)

    with data_dir.hold(tmp_path), pytest.raises(Unavailable, match=r"in use by another Switchboard \(process \d+\)"):
        data_dir.require_unheld(tmp_path)

    data_dir.require_unheld(tmp_path)


def test_who_takes_a_directory_waits_for_those_who_look(tmp_path, monkeypatch):
    looks = []
    take = data_dir._take

    def take_and_look(descriptor, place):
        with pytest.raises(BlockingIOError), data_dir._opened(place, data_dir.LOOK) as other:
            data_dir.fcntl.flock(other, data_dir.fcntl.LOCK_EX | data_dir.fcntl.LOCK_NB)
        looks.append(place)
        take(descriptor, place)

    monkeypatch.setattr(data_dir, "_take", take_and_look)

    data_dir.require_unheld(tmp_path)
    with data_dir.hold(tmp_path):
        assert looks == [tmp_path, tmp_path]
