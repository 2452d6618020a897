"""What the audit log masks is shown in full to who may see it, and each look is an entry."""

import pytest

from conversations.access.audit import chain, reveal
from conversations.core.errors import NotAllowed, NotFound
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import write_transaction
from conversations.models import AuditEntry
from tests.support.cast import client_of

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "sb_" + "a1B2" * 10


@pytest.fixture
def entry():
    with write_transaction():
        return chain.add_entry(
            SYSTEM, "pause", "record", reason=f"token {SECRET}", correlation={"query": f"key={SECRET}"}
        )


def looks():
    return list(AuditEntry.objects.filter(verb="reveal").order_by("seq").values_list("principal", "target", "outcome"))


def test_a_look_on_the_page_shows_the_secret_once_and_is_an_entry(team, entry):
    client, address = client_of(team["auditor"]), f"/audit/{entry.seq}/"
    before = client.get(address).content.decode()
    assert SECRET not in before
    assert "Reveal secrets" in before
    assert looks() == []

    answer = client.post(f"{address}reveal/")

    assert answer.content.decode().count(SECRET) >= 2
    assert answer["Cache-Control"] == "no-store"
    assert looks() == [(f"user:{team['auditor'].username}", f"audit:{entry.seq}", "done")]
    assert SECRET not in client.get(address).content.decode()


def test_a_program_reveals_by_the_api(team, entry):
    client = client_of(team["auditor"])
    (listed,) = [each for each in client.get("/api/v1/audit").json()["items"] if each["seq"] == entry.seq]
    assert SECRET not in str(listed)

    answer = client.post(f"/api/v1/audit/{entry.seq}/reveal")

    assert answer.json() == listed | {"reason": f"token {SECRET}", "correlation": {"query": f"key={SECRET}"}}
    assert answer["Cache-Control"] == "no-store"
    assert len(looks()) == 1
    assert client.post("/api/v1/audit/9999/reveal").status_code == 404


def test_nobody_else_looks_and_who_tries_is_an_entry(team, entry):
    for role in ("viewer", "operator", "approver"):
        answer = client_of(team[role]).post(f"/audit/{entry.seq}/reveal/")
        assert answer.status_code == 403
        assert SECRET not in answer.content.decode()
    with pytest.raises(NotAllowed):
        reveal.reveal(team["viewer"], entry.seq)
    with pytest.raises(NotFound):
        reveal.reveal(team["admin"], 9_999)

    assert looks() == [(f"user:{team['viewer'].username}", f"audit:{entry.seq}", "refused")]


def test_what_masks_nothing_offers_no_look(team):
    with write_transaction():
        plain = chain.add_entry(SYSTEM, "pause", "record", reason="because of rain")

    assert "Reveal secrets" not in client_of(team["admin"]).get(f"/audit/{plain.seq}/").content.decode()
