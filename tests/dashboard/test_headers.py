"""Every answer carries the security headers; foreign senders, hosts and visitors are refused; errors look like ours."""

import gzip
import re

import pytest
from django.db import OperationalError
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import path

from conversations.access.accounts import people, tokens
from conversations.core import principals
from conversations.core.errors import Conflict, TooLarge
from conversations.models import AuditEntry
from dashboard import urls
from tests.support.cast import client_of, person
from tests.support.grids import for_each

pytestmark = pytest.mark.django_db


def broken(request):
    raise ValueError("secret detail")


def too_large(request):
    raise TooLarge("at most 1 MiB")


def away(request):
    raise OperationalError("the server closed the connection")


def beaten(request):
    raise Conflict("tomas was first")


class Routes:
    """The product's routes, and some that fail."""

    urlpatterns = [
        *urls.urlpatterns,
        path("broken/", broken),
        path("away/", away),
        path("too-large/", too_large),
        path("api/v1/beaten", beaten),
        path("api/v1/broken", broken),
        path("api/v1/change", lambda request: HttpResponse("changed")),
    ]
    handler400, handler403 = urls.handler400, urls.handler403
    handler404, handler500 = urls.handler404, urls.handler500


@pytest.fixture
def viewer(team):
    return client_of(team["viewer"])


@pytest.fixture
def failing(team):
    with override_settings(ROOT_URLCONF=Routes):
        yield client_of(team["admin"])


def bearer(role="viewer", name="ci"):
    return {"Authorization": f"Bearer {tokens.make_token(principals.SYSTEM, name, role)}"}


def directives(response):
    parts = (part.strip().split(" ") for part in response["Content-Security-Policy"].split(";"))
    return {name: " ".join(values) for name, *values in parts}


PAGES = ["/sign-in/", "/sign-in/link/", "/account/", "/people/", "/nowhere/", "/sign-out/"]


@pytest.mark.parametrize("page", PAGES)
def test_every_answer_carries_the_headers(viewer, page):
    response = viewer.get(page)

    assert directives(response) == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "font-src": "'self'",
        "connect-src": "'self' ws://127.0.0.1:8000",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "switchboard",
    }
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["X-DNS-Prefetch-Control"] == "off"
    assert response["Referrer-Policy"] == "same-origin"
    assert response["Cross-Origin-Opener-Policy"] == "same-origin"
    assert response["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "camera=()" in response["Permissions-Policy"]
    assert response["Cache-Control"] == "no-store"
    assert re.fullmatch(r"[0-9a-f]{12}", response["X-Request-Id"])
    assert not any(name.startswith("Access-Control") for name in response.headers)


@pytest.mark.parametrize("page", PAGES)
def test_no_page_holds_inline_script_or_style(viewer, page):
    html = viewer.get(page).content.decode()

    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|<style|\son\w+=|javascript:", html)


def test_the_socket_of_a_safe_page_is_safe():
    response = client_of().get("/sign-in/", secure=True)

    assert directives(response)["connect-src"] == "'self' wss://127.0.0.1:8000"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "a b", ""])
def test_a_rebound_host_is_refused(team, host):
    response = client_of(team["viewer"]).get("/account/", headers={"Host": host})

    assert response.status_code == 400
    assert directives(response)["connect-src"] == "'self'"
    assert b"vera" not in response.content


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_change_asked_for_by_another_site_is_refused_and_counted(viewer, site):
    for _ in range(3):
        response = viewer.post("/sign-out-everywhere/", headers={"Sec-Fetch-Site": site})

    assert response.status_code == 403
    assert [(e.verb, e.outcome) for e in AuditEntry.objects.all()] == [("cross_site", "refused")]
    assert viewer.get("/account/").status_code == 200


@pytest.mark.parametrize("site", ["same-origin", "none", None])
def test_a_change_from_our_own_page_goes_on(viewer, site):
    response = viewer.post("/sign-out/", headers={"Sec-Fetch-Site": site} if site else {})

    assert response.status_code == 302


def test_another_site_may_link_to_a_page(viewer):
    assert viewer.get("/account/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


def test_a_form_without_a_token_is_refused_and_counted(team):
    client = Client(enforce_csrf_checks=True, headers={"Host": "127.0.0.1:8000"})
    client.force_login(team["viewer"], backend="django.contrib.auth.backends.ModelBackend")

    response = client.post("/sign-out-everywhere/")

    assert response.status_code == 403
    assert "reload the page" in response.content.decode()
    assert [(e.verb, e.outcome) for e in AuditEntry.objects.all()] == [("forged_form", "refused")]


SCRIPT = {"X-Requested-With": "fetch"}
PUBLIC = ("/api/v1/openapi.json",)  # says nothing that the source does not


def every_page():
    """Return each of the product's routes with its arguments filled in."""
    routes = (str(pattern.pattern) for pattern in urls.urlpatterns if hasattr(pattern, "callback"))
    return sorted("/" + re.sub(r"<[^>]+>", "x", route) for route in routes)


def test_nobody_sees_a_page_without_signing_in():
    for_each(((page,) for page in every_page()), assert_nobody_sees)


def assert_nobody_sees(page):
    response = client_of().get(page)

    if page in PUBLIC:
        assert response.status_code == 200
    elif page in ("/sign-in/", "/sign-in/link/"):
        assert response.status_code in (200, 404)
    elif page.startswith("/api/"):
        assert response.status_code == 401
    else:
        assert (response.status_code, response["Location"].split("?")[0]) == (302, "/sign-in/")


@pytest.mark.slow
def test_nobody_changes_anything_without_signing_in():
    for_each(((page,) for page in every_page()), assert_nobody_changes_anything)


def assert_nobody_changes_anything(page):
    if page.startswith("/sign-in/"):
        return

    assert client_of().post(page).status_code == (405 if page in PUBLIC else 401)


def test_the_script_of_an_open_page_is_told_that_its_person_is_signed_out():
    response = client_of().get("/ops/?part=state", headers=SCRIPT)

    assert (response.status_code, response.json()["error"]["code"]) == (401, "not_signed_in")


def test_the_script_of_an_open_page_is_told_why_it_is_refused(team):
    refused = client_of(team["viewer"]).post("/approvals/x/", {"decide": "approve"}, headers=SCRIPT)
    missing = client_of(team["viewer"]).get("/approvals/x/?part=card", headers=SCRIPT)

    assert (refused.status_code, "decide" in refused.json()["error"]["message"]) == (403, True)
    assert (missing.status_code, missing.json()["error"]["message"]) == (404, "there is no approval 'x'")


def test_the_script_of_an_open_page_is_told_that_the_database_is_away(failing):
    response = failing.get("/away/", headers=SCRIPT)

    assert (response.status_code, response["Retry-After"]) == (503, "1")
    assert response.json()["error"]["code"] == "unavailable"


def test_the_script_of_an_open_page_is_told_that_its_person_has_no_role_any_more(team):
    response = client_of(person("left")).get("/approvals/", headers=SCRIPT)

    assert (response.status_code, "no role" in response.json()["error"]["message"]) == (403, True)


def test_the_way_back_is_kept():
    response = client_of().get("/people/?x=1")

    assert response["Location"] == "/sign-in/?next=%2Fpeople%2F%3Fx%3D1"


def test_a_token_reads_pages(team):
    response = client_of().get("/people/", headers=bearer("admin"))

    assert response.status_code == 200


def test_a_token_is_held_to_its_role(team):
    assert client_of().get("/people/", headers=bearer("viewer")).status_code == 403
    refused = AuditEntry.objects.get(outcome="refused")
    assert (refused.principal, refused.target) == ("token:ci", "/people/")


def test_an_agents_token_sees_no_page(failing):
    assert client_of().get("/", headers=bearer("agent")).status_code == 403


def test_a_token_changes_nothing_through_a_page(team):
    response = client_of().post("/people/", {"name": "x"}, headers=bearer("admin"))

    assert response.status_code == 403
    assert "/api/v1/" in response.content.decode()


def test_a_token_needs_no_form_token_at_the_api(failing):
    client = Client(enforce_csrf_checks=True, headers={"Host": "127.0.0.1:8000"})

    assert client.post("/api/v1/change", headers=bearer()).content == b"changed"
    assert client.post("/api/v1/change").status_code == 401


@pytest.mark.parametrize("words", ["", "made-up", "sb_made-up", "sb_\udc80"])
def test_an_unknown_token_is_refused_and_counted(team, words):
    for _ in range(3):
        response = client_of(team["admin"]).get("/people/", headers={"Authorization": f"Bearer {words}"})

    assert response.status_code == 401
    assert [(e.principal, e.verb) for e in AuditEntry.objects.all()] == [("system", "use_token")]


def test_a_person_without_a_role_is_told_so(team):
    client = client_of(team[""])

    response = client.get("/people/")

    assert response.status_code == 403
    assert "have no role yet" in response.content.decode()
    assert client.get("/account/").status_code == 200
    assert client.post("/sign-out/").status_code == 302


def test_a_role_taken_away_counts_at_once(team):
    client = client_of(team["admin"])
    people.create_person(principals.SYSTEM, "other", ["admin"])
    assert client.get("/people/").status_code == 200

    people.set_roles(principals.SYSTEM, "ada", ["viewer"])

    assert client.get("/people/").status_code == 403


def test_a_broken_page_says_so_without_details(failing):
    response = failing.get("/broken/")

    html = response.content.decode()
    assert response.status_code == 500
    assert "Server error" in html
    assert response["X-Request-Id"] in html
    assert "secret detail" not in html
    assert "Traceback" not in html


def test_what_may_work_later_can_be_tried_again(failing):
    again = '<a class="button" data-tone="primary" href="/broken/?a=1&amp;b=%3C">'

    assert again in failing.get("/broken/?a=1&b=%3C").content.decode()
    assert "Try again" not in failing.post("/broken/?a=1&b=%3C").content.decode()
    assert "Try again" not in failing.get("/nowhere/").content.decode()


def test_errors_of_ours_become_pages(failing):
    response = failing.get("/too-large/")

    assert response.status_code == 413
    assert "At most 1 MiB." in response.content.decode()


def test_errors_of_ours_become_json_at_the_api(failing):
    response = failing.get("/api/v1/beaten")

    assert response.status_code == 409
    assert response.json() == {"error": {"code": "conflict", "message": "tomas was first"}}
    assert failing.get("/api/v1/broken").json()["error"]["code"] == "error"
    assert failing.get("/api/v1/nowhere").json()["error"]["code"] == "not_found"


def test_a_form_over_the_limit_is_413(viewer, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000

    response = viewer.post("/account/", {"new": "x" * 2000})

    assert response.status_code == 413


def test_a_missing_page_keeps_the_persons_frame(viewer):
    html = viewer.get("/nowhere/").content.decode()

    assert "Page not found" in html
    assert "vera" in html


@pytest.mark.slow
def test_pages_are_compressed_and_padded_and_files_are_not(viewer, team):
    accepting = {"Accept-Encoding": "gzip"}

    pages = [viewer.get("/", headers=accepting) for _ in range(20)]
    file = client_of(team["admin"]).get("/calls/export/jsonl", headers=accepting)

    assert {page["Content-Encoding"] for page in pages} == {"gzip"}
    assert "Accept-Encoding" in pages[0]["Vary"]
    assert gzip.decompress(pages[0].content).startswith(b"<!doctype html>")
    assert len({len(page.content) for page in pages}) > 3  # a length tells nothing of what is in it
    assert file.status_code == 200
    assert "Content-Encoding" not in file
    assert "Content-Encoding" not in viewer.get("/")
