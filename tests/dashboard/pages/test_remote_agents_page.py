"""The page of remote agents: an admin registers, lists and removes them, within the rules of addresses, audited."""

import pytest
from django.urls import reverse

from conversations.core.errors import Conflict, Invalid
from conversations.core.principals import SYSTEM
from conversations.core.remote_agent_setting import RemoteAgent
from conversations.models import Agent, AgentElsewhere, AuditEntry
from conversations.runs import edit_remote_agents
from tests.support.cast import cast, client_of

pytestmark = pytest.mark.django_db

FORM = {"name": "Weather", "url": "https://weather.example/agent?key=hidden", "token": "there-1", "description": "Rain"}


@pytest.fixture
def admin():
    return client_of(cast()["admin"])


def test_an_agent_is_registered_listed_and_removed(admin):
    answer = admin.post(reverse("remote-agents"), FORM)
    page = admin.get(answer.url).content.decode()
    row = AgentElsewhere.objects.get()

    assert (answer.status_code, row.url, row.token, row.made_by) == (302, FORM["url"], "there-1", "user:ada")
    assert "https://weather.example/agent" in page
    assert "Weather is registered" in page
    assert "key=hidden" not in page
    assert "there-1" not in page

    admin.post(reverse("remote-agent-removals"), {"name": "Weather"})

    assert not AgentElsewhere.objects.exists()
    entries = AuditEntry.objects.filter(target="agent:Weather").order_by("seq")
    assert [(entry.principal, entry.verb) for entry in entries] == [
        ("user:ada", "register_agent"), ("user:ada", "remove_agent")
    ]  # fmt: skip
    assert not any("there-1" in str(entry.__dict__) or "hidden" in str(entry.__dict__) for entry in entries)


REFUSED = {
    "http://weather.example/agent": "https",
    "https://127.0.0.1/agent": "not a public address",
    "https://[::1]/agent": "not a public address",
    "https://169.254.169.254/latest/meta-data": "not a public address",
    "https://[::ffff:10.0.0.1]/": "not a public address",
    "https://2130706433/": "in its usual form",
    "https://user:word@weather.example/": "user name",
    "file:///etc/passwd": "such as https://",
    "javascript:alert(1)": "such as https://",
    "": "such as https://",
}


@pytest.mark.parametrize("url", REFUSED)
def test_an_address_that_no_run_may_reach_is_refused(admin, url):
    answer = admin.post(reverse("remote-agents"), FORM | {"url": url})

    assert answer.status_code == 422
    assert REFUSED[url] in answer.content.decode()
    assert "SWITCHBOARD_ALERT_HOSTS" not in answer.content.decode()
    assert not AgentElsewhere.objects.exists()


def test_what_the_setting_allows_is_accepted(settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"agui_hosts": "127.0.0.1"})
    settings.CONFIG.__dict__.pop("agui_allow_list", None)  # what was made of the setting before

    edit_remote_agents.register(SYSTEM, RemoteAgent("Near", "http://127.0.0.1:9000/"))

    assert AgentElsewhere.objects.get().url == "http://127.0.0.1:9000/"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "a/b"),
        ("name", "x" * 101),
        ("token", "two words"),
        ("token", "é"),
        ("description", "a\x00b"),
    ],
    ids=["empty", "slash", "long", "space", "letters", "nul"],
)
def test_what_does_not_fit_is_refused_at_its_field(field, value):
    with pytest.raises(Invalid) as refused:
        edit_remote_agents.register(SYSTEM, RemoteAgent(**FORM | {field: value}))

    assert refused.value.field == field


def test_a_name_is_of_one_agent(admin):
    Agent.objects.create(team="Town Hall", name="Dialogue")
    edit_remote_agents.register(SYSTEM, RemoteAgent(**FORM))

    for name in ("Weather", "weather", "Dialogue"):
        with pytest.raises(Conflict):
            edit_remote_agents.register(SYSTEM, RemoteAgent(**FORM | {"name": name}))
    assert admin.post(reverse("remote-agents"), FORM).status_code == 409


def test_there_are_a_hundred_at_most(monkeypatch):
    monkeypatch.setattr(edit_remote_agents, "MAX_AGENTS", 1)
    edit_remote_agents.register(SYSTEM, RemoteAgent(**FORM))

    with pytest.raises(Invalid, match="remove one first"):
        edit_remote_agents.register(SYSTEM, RemoteAgent(**FORM | {"name": "Second"}))


def test_who_removes_what_is_gone_is_told(admin):
    answer = admin.post(reverse("remote-agent-removals"), {"name": "Weather"})

    assert answer.status_code == 404
    assert "no longer registered" in answer.content.decode()
