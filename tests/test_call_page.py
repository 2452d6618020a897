"""One call's page, two calls compared, and the form that makes a call again."""

import pytest

from tests.cast import cast, client_of
from tests.replay_desk import Desk
from tests.visits import words

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def people():
    return cast()


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


def page(client, call, **more):
    return client.get(f"/calls/{call.id}/", more)


def test_a_page_tells_all_of_a_call(people, desk):
    calls = desk.recorded("look", "send")
    answer = page(client_of(people["viewer"]), calls["look"])

    told = words(answer)
    assert answer.status_code == 200
    for term in ("Public name", "Lookup key", "Our id", "Call id, from the provider", "bare:look", calls["look"].id):
        assert term in told
    assert "Elm" in told
