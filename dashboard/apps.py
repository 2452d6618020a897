"""Django's entry for `dashboard`."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """Name the app."""

    name = "dashboard"
