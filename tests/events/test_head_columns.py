"""What a transaction writes back of its conversations: the columns that changed, of one and of several."""

import pytest
from django.db import connection

from conversations.core.write_transaction import write_transaction
from conversations.events.log import sql
from conversations.models import Conversation

pytestmark = pytest.mark.django_db
NEW = {"is_demo": True, "state": "paused"}


def new_value(name: str) -> object:
    """Return a value that no new conversation has in this column."""
    if name in NEW:
        return NEW[name]
    return 7 if isinstance(Conversation._meta.get_field(name).get_default(), int) else name


def columns(text: str) -> list[str]:
    return text.split(",")


@pytest.mark.parametrize("keys", [["a"], ["a", "b", "c"]], ids=["one", "several"])
def test_whichever_column_changed_is_stored(keys: list[str]) -> None:
    for name in (*columns(sql.OFTEN), *columns(sql.SELDOM)):
        if name == "activity":  # counted by `settle`
            continue
        with write_transaction(), connection.cursor() as cursor:
            heads = sql.lock_heads(cursor, keys, {})
            setattr(heads[keys[-1]], name, new_value(name))
            sql.advance(cursor, heads.values())

        assert Conversation.objects.filter(key=keys[-1]).values_list(name, flat=True).get() == new_value(name), name


def test_what_others_did_not_change_stays_as_it_is() -> None:
    with write_transaction(), connection.cursor() as cursor:
        heads = sql.lock_heads(cursor, ["a", "b"], {})
        heads["a"].title = "The pump"
        sql.advance(cursor, heads.values())
        heads = sql.lock_heads(cursor, ["a", "b"], {})
        heads["b"].head_seq = 3
        sql.advance(cursor, heads.values())

    assert list(Conversation.objects.order_by("key").values_list("title", "head_seq")) == [("The pump", 0), ("", 3)]


def test_a_column_that_is_read_is_one_that_is_written_or_never_changes() -> None:
    assert columns(sql.HEAD) == ["id", "key", *columns(sql.OFTEN), *columns(sql.SELDOM), "key_digest"]
