"""People, roles, links, passwords, sessions, tokens: each action works, refuses strangers, tells losers, is audited."""

import io
import json
import threading
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from conversations import audit, doorbell, principals, refusals
from conversations.actions import people, secret, sessions, sign_in_links, tokens
from conversations.chains import Verdict
from conversations.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.models import AuditEntry, SignInLink, Token, User
from conversations.models.people import ROLES
from conversations.principals import SYSTEM
from tests.cast import CAST, PASSWORD, STRANGER, cast

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def quick_hashes(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def fresh_counts():
    refusals._windows.clear()


@pytest.fixture
def team():
    return cast()


@pytest.fixture
def admin(team):
    return team["admin"]


def last_entry():
    return AuditEntry.objects.latest("seq")


def said(entry):
    return entry.principal, entry.verb, entry.target, entry.outcome


# Every action that takes a right, as a stranger would call it.
ADMINS_ACTIONS = {
    "create_person": lambda by: people.create_person(by, "new", ["viewer"]),
    "set_roles": lambda by: people.set_roles(by, "vera", ["admin"]),
    "deactivate": lambda by: people.deactivate(by, "otto"),
    "activate": lambda by: people.activate(by, "otto"),
    "make_link": lambda by: sign_in_links.make_link(by, "ada"),
    "set_password": lambda by: sessions.set_password(by, "ada", PASSWORD),
    "sign_out_everywhere": lambda by: sessions.sign_out_everywhere(by, "ada"),
    "make_token": lambda by: tokens.make_token(by, "ci", "admin"),
    "revoke_token": lambda by: tokens.revoke_token(by, "ci"),
}


@pytest.mark.parametrize("verb", ADMINS_ACTIONS)
@pytest.mark.parametrize("role", [role for role in CAST.values() if role != "admin"])
def test_an_action_refuses_everybody_but_the_admin(team, verb, role):
    with pytest.raises(NotAllowed):
        ADMINS_ACTIONS[verb](team[role])

    entry = AuditEntry.objects.get()
    assert (entry.principal, entry.verb, entry.outcome) == (f"user:{team[role].username}", verb, "refused")


@pytest.mark.parametrize("verb", ADMINS_ACTIONS)
def test_an_action_refuses_nobody_in_particular(team, verb):
    with pytest.raises(NotAllowed):
        ADMINS_ACTIONS[verb](STRANGER)

    assert said(AuditEntry.objects.get())[1::2] == (verb, "refused")


@pytest.mark.parametrize("verb", ADMINS_ACTIONS)
def test_an_admin_demoted_meanwhile_is_refused(team, admin, verb):
    assert admin.role_names == {"admin"}  # held by the object, as a request holds it
    people.create_person(SYSTEM, "other", ["admin"])
    people.set_roles(SYSTEM, "ada", ["viewer"])
    act = ADMINS_ACTIONS[verb]
    is_own = verb in ("set_password", "sign_out_everywhere")

    if is_own:
        act(admin)
    else:
        with pytest.raises(NotAllowed):
            act(admin)

    assert last_entry().outcome == ("done" if is_own else "refused")


def test_a_person_is_made_with_roles(admin):
    person = people.create_person(admin, " maria ", ["operator", "approver"])

    assert (person.username, person.role_names) == ("maria", {"operator", "approver"})
    assert not person.has_usable_password()
    assert said(last_entry()) == ("user:ada", "create_person", "user:maria", "done")
    assert json.loads(last_entry().correlation)["roles"] == ["approver", "operator"]


@pytest.mark.parametrize("name", ["", "a b", "../x", "..", "-x", "a\0b", "x" * 151, "a:b"])
def test_an_unfit_name_is_refused(admin, name):
    with pytest.raises(Invalid) as caught:
        people.create_person(admin, name, [])

    assert caught.value.field == "name"


def test_a_taken_name_is_refused_in_any_case(admin):
    with pytest.raises(Conflict, match="Vera is taken"):
        people.create_person(admin, "Vera", [])


def test_an_unknown_role_is_refused(admin):
    with pytest.raises(Invalid, match="no such role: root"):
        people.create_person(admin, "maria", ["root"])


def test_a_weak_password_is_refused(admin):
    with pytest.raises(Invalid, match="too short"):
        people.create_person(admin, "maria", [], password="short")


def test_roles_are_set_exactly_and_told(admin):
    people.set_roles(admin, "vera", ["operator", "auditor"])

    assert User.objects.get(username="vera").role_names == {"operator", "auditor"}
    facts = json.loads(last_entry().correlation)
    assert (facts["roles_before"], facts["roles"]) == (["viewer"], ["auditor", "operator"])
    assert last_entry().before == audit.digest(["viewer"])


def test_a_change_of_roles_rings_after_the_commit(admin, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks() as callbacks:
        people.set_roles(admin, "vera", [])

    assert callbacks == [doorbell.revoked]


def test_the_slower_admin_learns_who_was_first(team, admin):
    people.set_roles(admin, "ada", ["admin", "viewer"])
    people.set_roles(admin, "vera", ["operator"], expected=["viewer"])

    with pytest.raises(Conflict, match="user:ada was first: the roles of vera are now operator"):
        people.set_roles(SYSTEM, "vera", ["auditor"], expected=["viewer"])

    assert User.objects.get(username="vera").role_names == {"operator"}
    assert said(last_entry()) == ("system", "set_roles", "user:vera", "refused")


def test_the_last_active_admin_keeps_the_role(team, admin):
    people.create_person(admin, "asleep", ["admin"])
    people.deactivate(admin, "asleep")

    with pytest.raises(Conflict, match="last active admin"):
        people.set_roles(admin, "ada", ["viewer"])
    with pytest.raises(Conflict, match="last active admin"):
        people.deactivate(admin, "ada")

    assert User.objects.get(username="ada").role_names == {"admin"}


@pytest.mark.django_db(transaction=True)
def test_two_admins_cannot_demote_each_other_at_once():
    cast()
    people.create_person(SYSTEM, "adam", ["admin"])
    start, outcomes = threading.Barrier(2), []

    def demote(name):
        start.wait()
        try:
            people.set_roles(SYSTEM, name, ["viewer"])
            outcomes.append("done")
        except Conflict:
            outcomes.append("refused")
        connection.close()

    threads = [threading.Thread(target=demote, args=[name]) for name in ("ada", "adam")]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert sorted(outcomes) == ["done", "refused"]
    assert User.objects.filter(roles__name="admin").count() == 1


def test_deactivation_shuts_out_and_can_be_undone(team, admin):
    link = sign_in_links.make_link(admin, "vera")
    salt = team["viewer"].session_salt

    people.deactivate(admin, "vera")

    vera = User.objects.get(username="vera")
    assert not vera.is_active
    assert vera.session_salt != salt
    with pytest.raises(NotFound):
        sign_in_links.use_link(link, address="10.0.0.1")
    people.activate(admin, "vera")
    assert User.objects.get(username="vera").is_active


def test_the_second_deactivation_learns_of_the_first(admin):
    people.deactivate(admin, "vera")

    with pytest.raises(Conflict, match="user:ada was first: vera is deactivated already"):
        people.deactivate(SYSTEM, "vera")


@pytest.mark.parametrize("act", [people.deactivate, people.activate, sign_in_links.make_link])
def test_nobody_is_told_so(admin, act):
    with pytest.raises(NotFound, match="nobody is called nobody"):
        act(admin, "nobody")


def test_a_link_signs_in_once(team, admin):
    link = sign_in_links.make_link(admin, "vera")

    assert sign_in_links.use_link(link, address="10.0.0.1") == team["viewer"]
    assert said(last_entry()) == ("user:vera", "use_link", "user:vera", "done")
    with pytest.raises(Conflict, match="was used already") as caught:
        sign_in_links.use_link(link, address="10.0.0.1")
    assert caught.value.code == "link_used"
    assert said(last_entry()) == ("system", "use_link", "user:vera", "refused")


def test_a_link_is_stored_as_its_digest(admin):
    link = sign_in_links.make_link(admin, "vera")

    assert SignInLink.objects.get().digest == secret.digest(link)
    assert link not in str(list(AuditEntry.objects.values()))


def test_an_old_link_is_refused(admin):
    link = sign_in_links.make_link(admin, "vera")
    SignInLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    with pytest.raises(Conflict, match="too old") as caught:
        sign_in_links.use_link(link, address="10.0.0.1")

    assert caught.value.code == "link_expired"


def test_an_unknown_link_is_refused_and_counted():
    with pytest.raises(NotFound, match="not known here"):
        sign_in_links.use_link("made up", address="10.0.0.1")

    assert said(last_entry()) == ("system", "use_link", "user:?", "refused")


@pytest.mark.django_db(transaction=True)
def test_of_many_who_use_a_link_at_once_one_gets_in():
    cast()
    link = sign_in_links.make_link(SYSTEM, "vera")
    start, outcomes = threading.Barrier(8), []

    def use():
        start.wait()
        try:
            outcomes.append(sign_in_links.use_link(link, address="10.0.0.1").username)
        except Conflict as error:
            outcomes.append(error.code)
        connection.close()

    threads = [threading.Thread(target=use) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert sorted(outcomes) == ["link_used"] * 7 + ["vera"]


def test_no_link_for_a_deactivated_person(admin):
    people.deactivate(admin, "vera")

    with pytest.raises(Conflict, match="deactivated"):
        sign_in_links.make_link(admin, "vera")


def test_ones_own_password_is_set(team):
    sessions.set_password(team["viewer"], "vera", PASSWORD)

    assert User.objects.get(username="vera").check_password(PASSWORD)
    assert said(last_entry()) == ("user:vera", "set_password", "user:vera", "done")


def test_sign_out_everywhere_changes_the_salt_and_voids_links(team, admin):
    link = sign_in_links.make_link(admin, "vera")
    before = User.objects.get(username="vera").get_session_auth_hash()

    sessions.sign_out_everywhere(team["viewer"], "vera")

    assert User.objects.get(username="vera").get_session_auth_hash() != before
    with pytest.raises(NotFound):
        sign_in_links.use_link(link, address="10.0.0.1")


def test_a_failed_sign_in_keeps_no_unknown_name(team):
    sessions.note_failed_sign_in("vera", "10.0.0.1", is_locked_out=False)
    sessions.note_failed_sign_in("my password", "10.0.0.1", is_locked_out=True)

    targets = list(AuditEntry.objects.order_by("seq").values_list("verb", "target"))
    assert targets == [("sign_in", "user:vera"), ("lock_out", "user:?")]


def test_the_first_owner_gets_every_role_and_a_new_link_each_start():
    first = people.first_owner()
    second = people.first_owner()

    owner = User.objects.get()
    assert (owner.username, owner.role_names) == ("owner", set(ROLES))
    assert first != second
    assert sign_in_links.use_link(second, address="10.0.0.1") == owner


def test_no_owners_link_once_somebody_signed_in(team):
    User.objects.filter(username="vera").update(last_login=timezone.now())

    assert people.first_owner() is None


def test_a_token_is_found_by_its_secret_only(admin):
    words = tokens.make_token(admin, "ci", "viewer")

    token = tokens.token_of(words)
    assert (token.name, token.role, token.agent) == ("ci", "viewer", "")
    assert words.startswith("sb_")
    assert Token.objects.get().digest == secret.digest(words)
    assert tokens.token_of(words[:-1]) is None
    assert tokens.token_of("") is None
    assert said(last_entry()) == ("user:ada", "make_token", "token:ci", "done")


def test_the_use_of_a_token_is_noted_at_most_each_minute(admin, django_assert_num_queries):
    words = tokens.make_token(admin, "ci", "viewer")
    tokens.token_of(words)
    noted = Token.objects.get().last_used_at

    with django_assert_num_queries(1):
        tokens.token_of(words)
    assert Token.objects.get().last_used_at == noted

    Token.objects.update(last_used_at=noted - timedelta(minutes=2))
    tokens.token_of(words)
    assert Token.objects.get().last_used_at >= noted


def test_a_revoked_token_is_not_found_and_its_name_is_free_again(admin):
    words = tokens.make_token(admin, "ci", "viewer")
    with pytest.raises(Conflict, match="exists"):
        tokens.make_token(admin, "ci", "viewer")

    tokens.revoke_token(admin, "ci")

    assert tokens.token_of(words) is None
    with pytest.raises(Conflict, match="user:ada was first"):
        tokens.revoke_token(SYSTEM, "ci")
    assert tokens.token_of(tokens.make_token(admin, "ci", "operator")).role == "operator"


def test_an_agents_token_speaks_for_its_name_unless_told(admin):
    one = tokens.token_of(tokens.make_token(admin, "Dialogue", "agent"))
    two = tokens.token_of(tokens.make_token(admin, "robot", "agent", agent="Format Coordinator"))

    assert (one.agent, two.agent) == ("Dialogue", "Format Coordinator")
    with pytest.raises(Invalid, match="only a token with the role agent"):
        tokens.make_token(admin, "ci", "viewer", agent="Dialogue")


def test_the_user_command_makes_and_changes_people(capsys):
    call_command("user", "maria", "--role", "admin", "--role", "viewer")
    call_command("user", "tomas", "--role", "viewer")
    call_command("user", "tomas", "--role", "operator", "--deactivate")

    assert capsys.readouterr().out.splitlines() == [
        "maria: admin, viewer",
        "tomas: viewer",
        "tomas: operator (deactivated)",
    ]
    assert said(last_entry()) == ("system", "deactivate", "user:tomas", "done")


def test_the_user_command_reads_a_password(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\n"))

    call_command("user", "maria", "--role", "viewer", "--password-stdin")

    assert User.objects.get().check_password(PASSWORD)


def test_the_commands_say_what_is_wrong(team):
    with pytest.raises(CommandError, match="last active admin"):
        call_command("user", "ada", "--deactivate")
    with pytest.raises(CommandError, match="nobody is called"):
        call_command("signin-link", "nobody")
    with pytest.raises(CommandError, match="no token is called"):
        call_command("token", "nothing", "--revoke")


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


def test_everything_done_here_makes_one_whole_chain(team, admin):
    for act in ADMINS_ACTIONS.values():
        try:
            act(admin)
        except Conflict:
            continue

    assert audit.verify() == Verdict(len(ADMINS_ACTIONS), ok=True)
