"""The throttle of sign-ins: five wrong tries of one name from one address, then a pause. django-axes counts; the
numbers are `AXES_…` in `dashboard/settings.py`. Of IPv6, addresses of one /64 network count as one."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_cool_off
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Max
from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from conversations.core.client_network import client_network
from conversations.core.write_transaction import write_transaction
from conversations.models import User

AT_ONCE = 3  # passwords checked at the same time: each costs a thread of the pages some tenths of a second
IN_LINE = 5  # checked or waiting for it: each holds a thread of the pages, of which three stay free
FROM_AN_ADDRESS = 4  # of these: whoever floods leaves a place to everybody elsewhere


class PasswordCheckQueue:
    """Who has a password checked: a few at once, the rest wait; one try of a name from an address at a time."""

    def __init__(self) -> None:
        self._slots = threading.Semaphore(AT_ONCE)
        self._guard = threading.Lock()
        self._names: set[tuple[str, str]] = set()

    @contextmanager
    def place(self, address: str, name: str) -> Iterator[bool]:
        """Hold a place in the line and then a slot; False where there is no place."""
        address = client_network(address)
        if not self._enter(address, name):
            yield False
            return
        try:
            with self._slots:
                yield True
        finally:
            with self._guard:
                self._names.discard((address, name))

    def _enter(self, address: str, name: str) -> bool:
        with self._guard:
            from_here = Counter(where for where, _ in self._names)[address]
            if (address, name) in self._names or len(self._names) >= IN_LINE or from_here >= FROM_AN_ADDRESS:
                return False
            self._names.add((address, name))
            return True


class Handler(AxesDatabaseHandler):  # type: ignore[misc]  # django-axes has no types
    """Django-axes' tables, written under the process's write lock (§6)."""

    def user_login_failed(self, *args: Any, **kwargs: Any) -> None:  # Any: django-axes has no types
        """Count a wrong try."""
        with write_transaction():
            super().user_login_failed(*args, **kwargs)

    def user_logged_in(self, *args: Any, **kwargs: Any) -> None:
        """Forget the wrong tries before a right one."""
        with write_transaction():
            super().user_logged_in(*args, **kwargs)


def kept_address(request: HttpRequest) -> str | None:
    """Return the address that wrong tries are counted by: of IPv6 that of the network; None without one. django-axes
    calls it."""
    return _address(request.META.get("REMOTE_ADDR", "")) or None


def kept_name(request: HttpRequest | None, credentials: Mapping[str, Any] | None = None) -> str:
    """Return what the table of wrong tries keeps of a name: of one that is nobody's a keyed digest, since it may be a
    password typed in the wrong place. django-axes calls it."""
    name = (credentials or {}).get("username") or (request.POST.get("username", "") if request is not None else "")
    return stored_name(str(name).strip()[:150])


def stored_name(name: str) -> str:
    """Return a known name as it is, another one as a keyed digest."""
    if not name or User.objects.filter(username=name).exists():
        return name
    return "?" + salted_hmac("dashboard.throttle.name", name, algorithm="sha256").hexdigest()


def tries_left(request: HttpRequest, name: str) -> int:
    """Return how many more wrong tries this name has from this address."""
    failures: int = AxesProxyHandler.get_failures(request, {"username": name})
    return max(0, settings.AXES_FAILURE_LIMIT - failures)


def locked_until(name: str, address: str) -> datetime | None:
    """Return when this name may try again from this address; None when it is not locked."""
    attempts = AccessAttempt.objects.filter(username=stored_name(name), ip_address=_address(address))
    last: datetime | None = attempts.aggregate(last=Max("attempt_time"))["last"]
    pause = get_cool_off()
    return last + pause if last and pause else None


def _address(address: str) -> str:
    return client_network(address).partition("/")[0]
