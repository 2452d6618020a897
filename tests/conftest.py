"""Pages drawn without collected files; browser tests last."""

from collections.abc import Iterator

import pytest
from django.test import override_settings

from tests.browser import chromium  # noqa: F401  # a fixture of every test: a run has one playwright
from tests.recorders import bus, nursery, place, redis_server  # noqa: F401  # fixtures of the recorder's tests

PLAIN = {
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
}


@pytest.fixture(scope="session", autouse=True)
def plain_static_addresses() -> Iterator[None]:
    """Name static files as they are; `test_static` tests the names that pages get."""
    with override_settings(STORAGES=PLAIN):
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what drives a browser last: from then on playwright's loop runs in this thread, and `asyncio.run` cannot."""
    items.sort(key=lambda item: "chromium" in getattr(item, "fixturenames", ()))
