"""Django's entry for `conversations`."""

from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    """Name the app."""

    name = "conversations"
