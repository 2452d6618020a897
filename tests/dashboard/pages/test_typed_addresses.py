"""Addresses as people type them lead to the page that is meant, and to no other place."""

import pytest
from django.urls import URLPattern, reverse

from dashboard.pages.typed_addresses import NAMES
from dashboard.urls import urlpatterns
from tests.support.cast import client_of

pytestmark = pytest.mark.django_db

PAGES = [pattern for pattern in urlpatterns if isinstance(pattern, URLPattern) and str(pattern.pattern).endswith("/")]


def address_of(page):
    """Return an address of a page, with made-up parts."""
    parts = {name: 7 if "number" in type(converter).__name__.lower() else "oak park" for name, converter in
             page.pattern.converters.items()}  # fmt: skip
    return reverse(page.name, kwargs=parts)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_reached_without_its_last_slash_and_with_one_too_many(client, page):
    address = address_of(page)

    for typed in (address.rstrip("/"), f"{address}/"):
        response = client.get(f"{typed}?q=a%20b")
        assert (response.status_code, response["Location"]) == (302, f"{address}?q=a%20b"), typed


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_reached_by_its_name(team, name):
    for typed in (f"/{name}", f"/{name}/"):
        response = client_of(team["admin"]).get(typed, follow=True)
        assert response.redirect_chain[0] == (reverse(NAMES[name]), 302)
        assert response.status_code == 200


@pytest.mark.parametrize("path", ["/nothing", "/nothing/", "//elsewhere.example", "/api/v1/conversations/"])
def test_an_address_that_means_no_page_is_not_found(client, path):
    assert client.get("/", PATH_INFO=path).status_code == 404


def test_nothing_but_a_visit_is_led_on(client):
    assert client.post("/conversations").status_code in (403, 404)
    assert client.get("/conversations/", headers={"X-Requested-With": "fetch"}).status_code == 404
