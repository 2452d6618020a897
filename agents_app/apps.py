"""Django's entry for `agents_app`."""

from django.apps import AppConfig


class AgentsAppConfig(AppConfig):
    """Name the app."""

    name = "agents_app"
