"""The error that ended a transaction is not kept: its frames hold what the failed work had read."""

import gc
import weakref

import pytest
from django.db import DatabaseError, connection, transaction

from conversations.core.db_threads import with_connection
from conversations.models import Meta

pytestmark = pytest.mark.django_db(transaction=True)


class Body:
    """Stands for what a failed piece of work had read."""


def fail_twice() -> None:
    for _ in range(2):
        Meta(name="twice", value="").save(force_insert=True)


def fail(held: list[weakref.ref]) -> None:
    body = Body()
    held.append(weakref.ref(body))
    with transaction.atomic():
        fail_twice()


@pytest.mark.parametrize("around", [fail, lambda held: with_connection(fail, held)], ids=["bare", "released"])
def test_what_a_failed_transaction_held_is_let_go(around):
    held: list[weakref.ref] = []

    with pytest.raises(DatabaseError):
        around(held)
    gc.collect()

    assert held[0]() is None


def test_an_error_within_a_transaction_is_known_until_its_end():
    with transaction.atomic():
        with pytest.raises(DatabaseError):
            fail_twice()
        with pytest.raises(transaction.TransactionManagementError) as refused:
            Meta.objects.exists()
        assert isinstance(refused.value.__cause__, DatabaseError)
        transaction.set_rollback(True)

    assert connection.rollback_exc is None
