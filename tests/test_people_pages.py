"""Signing in and out, one's account, and the admin's page of people, as a browser sees them."""

import html
import re

import pytest
from axes.models import AccessAttempt
from django.apps import apps
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from conversations import refusals
from conversations.actions import people, sessions, sign_in_links
from conversations.models import AuditEntry, User
from conversations.principals import SYSTEM
from tests.cast import PASSWORD, cast, client_of

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
def maria(team):
    return people.create_person(SYSTEM, "maria", ["viewer"], password=PASSWORD)


@pytest.fixture
def admin(team):
    return client_of(team["admin"])


def try_in(client, password=PASSWORD, name="maria", **more):
    return client.post("/sign-in/", {"username": name, "password": password, **more})


def words(response):
    return html.unescape(response.content.decode())


def who(client):
    """Answer the name the account page greets, or None when it sends to the sign-in."""
    response = client.get("/account/")
    found = re.search(r'data-person="([^"]+)"', words(response))
    return found.group(1) if found else None


def entries(**facts):
    return list(
        AuditEntry.objects.filter(**facts).order_by("seq").values_list("principal", "verb", "target", "outcome")
    )


def link_for(name):
    return f"/sign-in/link/?t={sign_in_links.make_link(SYSTEM, name)}"


def test_the_right_password_lets_in(maria):
    client = client_of()

    response = try_in(client)

    assert (response.status_code, response["Location"]) == (302, "/")
    assert who(client) == "maria"
    assert entries(verb="sign_in") == [("user:maria", "sign_in", "user:maria", "done")]


def test_signing_in_changes_the_session_key(maria):
    client = client_of()
    client.get("/sign-in/")
    session = client.session
    session["planted"] = True
    session.save()
    client.cookies["switchboard_session"] = session.session_key

    try_in(client)

    assert client.cookies["switchboard_session"].value != session.session_key
    assert not Session.objects.filter(pk=session.session_key).exists()


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("/people/?x=1", "/people/?x=1"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("evil", "/"),
        ("", "/"),
    ],
)
def test_after_signing_in_only_own_paths_are_gone_to(maria, asked, path):
    assert try_in(client_of(), next=asked)["Location"] == path


def test_a_wrong_password_says_how_many_tries_are_left(maria):
    client = client_of()

    left = [re.search(r"\d tr(?:y|ies)", words(try_in(client, "wrong"))).group() for _ in range(4)]

    assert left == ["4 tries", "3 tries", "2 tries", "1 try"]
    assert who(client) is None


def test_an_unknown_name_gets_the_same_answer(maria):
    known, unknown = try_in(client_of(), "wrong"), try_in(client_of(), "wrong", name="nobody")

    strip = re.compile(r'value="[^"]*"|data-\w+="[^"]*"|nonce')
    assert strip.sub("", words(known)) == strip.sub("", words(unknown))
    assert known.status_code == unknown.status_code == 422


def test_the_fifth_wrong_password_locks_out_until_a_time_told(maria):
    client = client_of()

    for _ in range(5):
        response = try_in(client, "wrong")

    assert response.status_code == 429
    assert response["Retry-After"].endswith("GMT")
    assert re.search(r"Try again after \d\d:\d\d:\d\d UTC", words(response))
    assert try_in(client).status_code == 429  # the right one too
    assert who(client) is None
    assert [entry[1:] for entry in entries(outcome="refused")] == [
        ("sign_in", "user:maria", "refused"),
        ("lock_out", "user:maria", "refused"),
    ]


def test_tries_while_locked_out_do_not_prolong_it(maria):
    client = client_of()
    times = [try_in(client, "wrong").headers.get("Retry-After") for _ in range(8)]

    assert times[4] == times[-1] is not None


def test_a_lock_out_ends(maria):
    client = client_of()
    for _ in range(5):
        try_in(client, "wrong")
    AccessAttempt.objects.update(attempt_time=timezone.now() - timezone.timedelta(minutes=16))

    assert try_in(client).status_code == 302


def test_a_lock_out_of_one_name_spares_others(maria):
    people.create_person(SYSTEM, "tomas", ["viewer"], password=PASSWORD)
    for _ in range(5):
        try_in(client_of(), "wrong")

    assert try_in(client_of(), name="tomas").status_code == 302


def test_a_deactivated_person_is_not_let_in(maria):
    people.deactivate(SYSTEM, "maria")

    assert try_in(client_of()).status_code == 422


@pytest.mark.parametrize("site", [{}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}])
def test_a_link_opened_by_hand_signs_in(team, site):
    client = client_of()

    response = client.get(link_for("vera"), headers=site)

    assert (response.status_code, response["Location"]) == (302, "/account/")
    assert who(client) == "vera"
    assert ("user:vera", "sign_in", "user:vera", "done") in entries()


@pytest.mark.parametrize(
    "ahead",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none", "Sec-Purpose": "prefetch;prerender"},
        {"Purpose": "prefetch"},
    ],
)
def test_a_link_opened_by_another_page_waits_for_a_click(team, ahead):
    client, link = client_of(), link_for("vera")

    response = client.get(link, headers=ahead)

    assert response.status_code == 200
    assert who(client) is None
    secret = re.search(r'name="t" value="([^"]+)"', words(response)).group(1)
    client.post("/sign-in/link/", {"t": secret})
    assert who(client) == "vera"


def test_a_head_request_leaves_the_link_alone(team):
    link = link_for("vera")

    client_of().head(link)

    assert client_of().get(link).status_code == 302


def test_the_click_is_protected_like_every_form(team):
    client = Client(enforce_csrf_checks=True, headers={"Host": "127.0.0.1:8000"})

    assert client.post("/sign-in/link/", {"t": sign_in_links.make_link(SYSTEM, "vera")}).status_code == 403


def test_a_used_link_says_so(team):
    link = link_for("vera")
    client_of().get(link)

    response = client_of().get(link)

    assert response.status_code == 409
    assert "was used already" in words(response)


@pytest.mark.parametrize("address", ["/sign-in/link/?t=made-up", "/sign-in/link/"])
def test_an_unknown_link_says_so(team, address):
    response = client_of().get(address)

    assert response.status_code == 404
    assert "not known here" in words(response)


def test_a_link_replaces_whoever_was_signed_in(team):
    client = client_of(team["admin"])

    client.get(link_for("vera"))

    assert who(client) == "vera"


def test_signing_out_ends_the_session(team):
    client = client_of(team["viewer"])
    key = client.cookies["switchboard_session"].value

    client.post("/sign-out/")

    assert who(client) is None
    assert not Session.objects.filter(pk=key).exists()
    assert entries() == [("user:vera", "sign_out", "user:vera", "done")]


@pytest.mark.parametrize("page", ["/sign-out/", "/sign-out-everywhere/"])
def test_a_mere_visit_signs_nobody_out(team, page):
    client = client_of(team["viewer"])

    assert client.get(page).status_code == 405
    assert who(client) == "vera"


def test_signing_out_everywhere_ends_every_session(team):
    here, there, other = client_of(team["viewer"]), client_of(team["viewer"]), client_of(team["operator"])

    here.post("/sign-out-everywhere/")

    assert (who(here), who(there), who(other)) == (None, None, "otto")


def test_a_new_password_keeps_this_session_and_ends_the_others(maria):
    here, there = client_of(), client_of()
    try_in(here), try_in(there)

    response = here.post("/account/", {"old": PASSWORD, "new": "another long secret"})

    assert response["Location"] == "/account/?saved=password"
    assert (who(here), who(there)) == ("maria", None)
    assert try_in(client_of(), "another long secret").status_code == 302


def test_the_present_password_is_asked_for(maria):
    client = client_of()
    try_in(client)

    response = client.post("/account/", {"old": "wrong", "new": "another long secret"})

    assert response.status_code == 422
    assert "not your present password" in words(response)
    assert User.objects.get(username="maria").check_password(PASSWORD)


def test_guessing_the_present_password_is_throttled(maria):
    client = client_of()
    try_in(client)

    answers = [client.post("/account/", {"old": "wrong", "new": "another long secret"}).status_code for _ in range(6)]

    assert answers == [422, 422, 422, 422, 429, 429]


def test_after_a_link_the_forgotten_password_is_not_asked_for(maria):
    client = client_of()
    client.get(link_for("maria"))

    client.post("/account/", {"new": "another long secret"})

    assert User.objects.get(username="maria").check_password("another long secret")


def test_a_weak_new_password_is_refused(team):
    client = client_of(team["viewer"])

    response = client.post("/account/", {"new": "short"})

    assert response.status_code == 422
    assert "too short" in words(response)


def test_a_person_without_a_password_is_told_to_set_one(team):
    client = client_of(team["viewer"])
    assert "Set one now" in words(client.get("/account/"))

    client.post("/account/", {"new": PASSWORD})

    assert "Set one now" not in words(client.get("/account/"))


def test_the_account_lists_where_one_is_signed_in(maria):
    here, there = client_of(), client_of()
    here.get(link_for("maria"), headers={"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0"})
    there.get(link_for("maria"), headers={"User-Agent": "<b>robot</b>"})

    response = here.get("/account/")

    assert words(response).count("this browser") == 1
    assert "Firefox on Linux" in words(response)
    assert "&lt;b&gt;robot&lt;/b&gt;" in response.content.decode()
    assert len(list(sessions.seats(maria))) == 2


def test_the_admin_sees_everybody(admin):
    text = words(admin.get("/people/"))

    assert all(f'id="{name}"' in text for name in ("vera", "otto", "april", "audrey", "ada", "nora"))


@pytest.mark.parametrize("role", ["viewer", "operator", "approver", "auditor", ""])
@pytest.mark.parametrize(
    "path", ["/people/", "/people/ada/roles/", "/people/ada/link/", "/people/ada/activity/", "/people/ada/sign-outs/"]
)
def test_others_change_nobody_and_are_recorded(team, role, path):
    client = client_of(team[role])
    before = list(User.objects.order_by("pk").values())

    response = client.post(path, {"name": "new", "role": "admin"})

    assert response.status_code == 403
    assert list(User.objects.order_by("pk").values()) == before
    assert AuditEntry.objects.filter(outcome="refused").count() == AuditEntry.objects.count() == 1


def test_adding_a_person_shows_a_link_once(admin):
    response = admin.post("/people/", {"name": "maria", "role": ["viewer", "operator"]})

    link = re.search(r'value="http://127.0.0.1:8000(/sign-in/link/\?t=[^"]+)"', words(response)).group(1)
    assert User.objects.get(username="maria").role_names == {"viewer", "operator"}
    assert link not in words(admin.get("/people/"))
    newcomer = client_of()
    newcomer.get(link)
    assert who(newcomer) == "maria"


def test_a_taken_name_keeps_what_was_entered(admin):
    response = admin.post("/people/", {"name": "vera", "role": "operator"})

    assert response.status_code == 409
    assert "vera is taken" in words(response)
    assert 'value="vera"' in words(response)


def test_roles_are_saved(admin):
    response = admin.post("/people/vera/roles/", {"expected": "viewer", "role": ["approver", "auditor"]})

    assert response["Location"] == "/people/#vera"
    assert User.objects.get(username="vera").role_names == {"approver", "auditor"}


def test_roles_changed_meanwhile_are_not_overwritten(admin):
    people.set_roles(SYSTEM, "vera", ["operator"])

    response = admin.post("/people/vera/roles/", {"expected": "viewer", "role": ["approver"]})

    assert response.status_code == 409
    assert "system was first: the roles of vera are now operator" in words(response)


def test_deactivating_ends_sessions_and_activating_undoes_it(team, admin):
    vera = client_of(team["viewer"])

    admin.post("/people/vera/activity/", {"active": "no"})
    assert who(vera) is None
    assert "deactivated" in words(admin.get("/people/"))

    admin.post("/people/vera/activity/", {"active": "yes"})
    assert User.objects.get(username="vera").is_active


def test_the_last_admin_cannot_leave(admin):
    response = admin.post("/people/ada/activity/", {"active": "no"})

    assert response.status_code == 409
    assert "last active admin" in words(response)


def test_the_admin_signs_somebody_out(team, admin):
    vera = client_of(team["viewer"])

    admin.post("/people/vera/sign-outs/")

    assert who(vera) is None


def test_nobody_is_404(admin):
    assert admin.post("/people/nobody/link/").status_code == 404


def test_no_secret_reaches_the_log_the_audit_or_the_throttle(maria, caplog):
    secret = "planted secret hidden-secret-471108150"
    client = client_of()
    link = link_for("maria")
    client.get(link), client.get(link)  # the second is refused
    client.post("/account/", {"new": secret})
    client.post("/account/", {"old": "wrong " + secret, "new": "next " + secret})
    try_in(client_of(), "wrong " + secret)
    try_in(client_of(), secret, name=secret)
    client_of().get("/people/", headers={"Authorization": f"Bearer sb_{secret}"})

    stored = [str(list(model.objects.values())) for model in apps.get_models() if model is not AccessAttempt]
    attempts = str(list(AccessAttempt.objects.exclude(username=secret).values()))
    assert AccessAttempt.objects.count() == 2
    assert "hidden-secret-471108150" not in attempts + "".join(stored) + caplog.text
    assert link.partition("t=")[2] not in attempts + "".join(stored) + caplog.text
