"""Which page answers which address (design 3.6)."""

from django.urls import URLPattern, URLResolver, path, register_converter

from conversations.addresses import ConversationId
from dashboard.api.conversations import conversations as api_conversations
from dashboard.api.read_markers import read_markers
from dashboard.pages.conversations import conversations

register_converter(ConversationId, "cid")

urlpatterns: list[URLPattern | URLResolver] = [
    path("", conversations, name="conversations"),
    path("api/v1/conversations", api_conversations, name="api-conversations"),
    path("api/v1/read-markers", read_markers, name="api-read-markers"),
]
