"""One data directory for the whole test run, made before settings are read; pages drawn without collected files."""

import os
import tempfile
from collections.abc import Iterator

import pytest
from django.test import override_settings

from tests.browser import chromium  # noqa: F401  # a fixture of every test: a run has one playwright

os.environ.setdefault("SWITCHBOARD_DATA_DIR", tempfile.mkdtemp(prefix="switchboard-test-"))
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # playwright's sync API runs a loop in the test's thread

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
