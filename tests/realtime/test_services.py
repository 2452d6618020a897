"""The servers that tests stand on start, answer, come back and go."""

import signal

import psycopg
import pytest

from tests.support.services import PostgresServer, RedisServer, running


def test_redis_starts_and_comes_back_on_its_port():
    with running(RedisServer("--appendonly", "yes", "--appendfsync", "always")) as server:
        server.client().set("word", "kept")

        server.kill()
        server.start()

        assert server.client().get("word") == "kept"


@pytest.mark.thorough
def test_postgres_starts_and_survives_an_immediate_stop():
    with running(PostgresServer()) as server:
        url = server.create("things")
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE word (text text)")
            connection.execute("INSERT INTO word VALUES ('kept')")

        server.stop(signal.SIGQUIT)
        server.start()

        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT text FROM word").fetchall() == [("kept",)]
