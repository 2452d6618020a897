"""The commands `user`, `signin-link` and `token`."""

import io

import pytest
from django.core.management import CommandError, call_command

from conversations.access.accounts import sign_in_links, tokens
from conversations.core import principals
from conversations.models import SignInLink, User
from dashboard import cli
from tests.support.cast import PASSWORD, audit_summary, last_entry

pytestmark = pytest.mark.django_db


def test_the_user_command_makes_and_changes_people(capsys):
    call_command("user", "maria", "--role", "admin", "--role", "viewer")
    call_command("user", "tomas", "--role", "viewer")
    call_command("user", "tomas", "--role", "operator", "--deactivate")

    assert capsys.readouterr().out.splitlines() == [
        "maria: admin, viewer",
        "tomas: viewer",
        "tomas: operator (deactivated)",
    ]
    assert audit_summary(last_entry()) == ("system", "deactivate", "user:tomas", "done")


def test_the_user_command_reads_a_password(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\n"))

    call_command("user", "maria", "--role", "viewer", "--password-stdin")

    assert User.objects.get().check_password(PASSWORD)


def test_the_commands_say_what_is_wrong(team):
    with pytest.raises(CommandError, match="last active admin"):
        call_command("user", "ada", "--deactivate")
    with pytest.raises(CommandError, match="there is no person"):
        call_command("signin-link", "nobody")
    for change in ("--deactivate", "--activate"):
        with pytest.raises(CommandError, match="there is no person nobody"):
            call_command("user", "nobody", "--role", "viewer", change)
    assert not User.objects.filter(username="nobody").exists(), "a name typed wrong makes nobody"
    with pytest.raises(CommandError, match="there is no token"):
        call_command("token", "nothing", "--revoke")


@pytest.mark.parametrize("typed", ["jose\u0301", " josé ", "ｊosé"], ids=["two characters", "spaces", "full width"])
def test_a_person_is_found_however_the_name_is_typed(typed, capsys, client, monkeypatch):
    """A keyboard, a shell and a password manager may write the same letter in another way."""
    call_command("user", typed, "--role", "viewer")
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\n"))
    call_command("user", typed, "--role", "operator", "--password-stdin")
    call_command("signin-link", typed)
    answer = client.post("/sign-in/", {"username": typed, "password": PASSWORD})

    assert capsys.readouterr().out.splitlines()[:2] == ["josé: viewer", "josé: operator"]
    assert [user.username for user in User.objects.all()] == ["josé"]
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")


@pytest.mark.parametrize(
    "address",
    ["http://[", "http://a:99999999", "http://", "a:8000", "javascript:alert(1)", "http://a/x?y", "http://a\nb", " "],
)
def test_a_link_to_an_address_that_is_none_is_not_made(team, address):
    with pytest.raises(CommandError, match="--url must be the server's address"):
        call_command("signin-link", "vera", "--url", address)

    assert not SignInLink.objects.exists()


@pytest.mark.parametrize("line", ["short\n", "\n", ""], ids=["weak", "empty", "none"])
def test_a_password_that_is_refused_leaves_the_roles_as_they_were(team, monkeypatch, line):
    monkeypatch.setattr("sys.stdin", io.StringIO(line))

    with pytest.raises(CommandError, match="password"):
        call_command("user", "vera", "--role", "admin", "--password-stdin")

    assert User.objects.get(username="vera").role_names == {"viewer"}


def test_the_link_stands_alone_on_the_last_line(team, capsys):
    call_command("signin-link", "vera", "--url", "http://127.0.0.1:8000/")

    link = capsys.readouterr().out.splitlines()[-1]
    start = "http://127.0.0.1:8000/sign-in/link/?t="
    assert link.startswith(start)
    assert sign_in_links.use_link(link.removeprefix(start), address="10.0.0.1").username == "vera"


def test_the_token_stands_alone_on_the_last_line(capsys):
    call_command("token", "robot", "--role", "agent", "--agent", "Dialogue")

    token = tokens.token_of(capsys.readouterr().out.splitlines()[-1])
    assert (token.name, token.agent, token.created_by) == ("robot", "Dialogue", str(principals.SYSTEM))


@pytest.mark.parametrize(
    "arguments",
    [("user", "\udcff", "--role", "viewer"), ("signin-link", "\udcff"), ("hold", "*", "--reason", "\udcff")],
)
def test_an_argument_that_is_no_text_is_named(arguments, monkeypatch):
    """A shell gives bytes that are not UTF-8 as lone surrogates, which no database stores."""
    monkeypatch.setattr("sys.argv", ["switchboard", *arguments])

    with pytest.raises(SystemExit, match=r"'\\udcff' must be UTF-8 text\."):
        cli.main()
