"""The throttle of sign-ins: five wrong tries of one name from one address, then a pause. django-axes counts."""

from datetime import datetime
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_cool_off
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import Max
from django.http import HttpRequest

from conversations.log.writing import writing


class Handler(AxesDatabaseHandler):  # type: ignore[misc]  # django-axes has no types
    """Django-axes' tables, written under the process's turn (design, section 6)."""

    def user_login_failed(self, *args: Any, **kwargs: Any) -> None:  # Any: django-axes has no types
        """Count a wrong try."""
        with writing():
            super().user_login_failed(*args, **kwargs)

    def user_logged_in(self, *args: Any, **kwargs: Any) -> None:
        """Forget the wrong tries before a right one."""
        with writing():
            super().user_logged_in(*args, **kwargs)


def tries_left(request: HttpRequest, name: str) -> int:
    """Answer how many more wrong tries this name has from this address."""
    failures: int = AxesProxyHandler.get_failures(request, {"username": name})
    return max(0, settings.AXES_FAILURE_LIMIT - failures)


def locked_until(name: str, address: str) -> datetime | None:
    """Answer when this name may try again from this address; None when it is not locked."""
    attempts = AccessAttempt.objects.filter(username=name, ip_address=address)
    last: datetime | None = attempts.aggregate(last=Max("attempt_time"))["last"]
    pause = get_cool_off()
    return last + pause if last and pause else None
