"""Two web nodes on PostgreSQL and Redis, a recorder with a standby: what is said is seen everywhere, whatever dies."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.support.deployment import START, Crowd, Deployment, Follower, over_http, over_redis
from tests.support.live import Server, free_port, until
from tests.support.services import running
from tests.support.tiers import variants

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def deployment():
    with running(Deployment()) as deployment:
        yield deployment


@pytest.fixture
def follow(deployment):
    """Follow conversations; ended at the end."""
    started = []

    def begin(node, key, token=""):
        follower = Follower(node, token or deployment.token, key)
        follower.start()
        assert follower.is_level.wait(60)
        started.append(follower)
        return follower

    yield begin
    for follower in started:
        follower.close()


def kill_web(deployment):
    """End both web nodes at once, one after the other, and start them again."""
    for node in (deployment.a, deployment.b):
        node.kill()
        node.launch()
        until(node._is_ready, within=START, what="the node to be back")


def restart_redis(deployment):
    deployment.redis.kill()
    deployment.redis.start()


def restart_postgres(deployment):
    deployment.postgres.stop(signal.SIGQUIT)
    deployment.postgres.start()


FAULTS = {
    "postgres": [restart_postgres],
    "redis-and-recorder": [restart_redis, lambda d: d.kill_active_recorder()],
    "web": [kill_web],
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", variants(FAULTS))
def test_what_is_said_is_seen_on_the_other_node_while_parts_die(deployment, follow, fault):
    web, bus = f"web-{fault}", f"bus-{fault}"
    followers = {key: follow(deployment.b, key) for key in (web, bus)}
    agents = {web: over_http(deployment.a, deployment.token, web), bus: over_redis(deployment.redis, bus)}
    for agent in agents.values():
        agent.start()
    until(lambda: all(f.numbers for f in followers.values()), within=60, what="the first words on node B")

    for part_dies in FAULTS[fault]:
        part_dies(deployment)
        seen = {key: len(f.numbers) for key, f in followers.items()}
        until(
            lambda seen=seen: all(len(followers[key].numbers) > n + 5 for key, n in seen.items()),
            within=START,
            what="more words after it",
        )

    for key, agent in agents.items():
        total = agent.finish()
        until(
            lambda key=key, expected=total: len(followers[key].numbers) >= expected, within=60, what="all that was said"
        )
        assert sorted(set(followers[key].numbers) - {-1}) == list(range(total))
        assert len([n for n in followers[key].numbers if n >= 0]) == total  # each once
    deployment.are_ready(deployment.a, deployment.b)


def ask(deployment, key):
    """Say something to an agent of ours, at node A."""
    words = {"type": "message", "conversation_id": key, "sender": "user:ada", "recipient": "agent:Dialogue"}
    status, _ = deployment.a.publish(deployment.token, "chat:Dialogue", words | {"content": "Hello!"}, key)
    assert status == 201


@pytest.mark.thorough
def test_workers_of_their_own_answer_at_the_other_node_and_a_killed_ones_runs_are_told(deployment, follow):
    """What a dead worker had begun is `interrupted`; everything else is answered by the one that is left."""
    doomed, _ = deployment.work(), deployment.work()
    until(lambda: len(deployment.alive("worker")) == 2, within=START, what="two workers")
    answered = follow(deployment.b, "asked-after")
    for n in range(8):
        ask(deployment, f"asked-before-{n}")
    until(lambda: deployment.rows("SELECT 1 FROM conversations_run WHERE attempt>0"), within=START, what="a run")
    doomed.kill()
    ask(deployment, "asked-after")

    over = "SELECT status FROM conversations_run WHERE status NOT IN ('queued','running')"
    until(lambda: len(deployment.rows(over)) == 9, within=START, what="all of them to be over")
    assert {status for (status,) in deployment.rows(over)} <= {"done", "interrupted"}
    after = "SELECT r.status FROM conversations_run r JOIN conversations_conversation c ON c.id=r.conversation_id"
    assert deployment.rows(f"{after} WHERE c.key='asked-after'") == [("done",)]
    until(lambda: answered.last >= 4, within=60, what="the answer at node B")  # asked, queued, started, said, done


@pytest.mark.slow
def test_without_the_layer_news_are_seen_and_rights_end_in_time(deployment, follow):
    """The Redis of the broadcast is gone: one look a second does its work (laws A and H)."""
    owner, other = (deployment.make_token(name, "viewer") for name in ("doomed", "doomed-too"))
    cookie = f"switchboard_session={session_of(deployment, 'sam')}"
    seen = follow(deployment.b, "unheard")
    deployment.redis.kill()
    try:
        delays = []
        for n in range(5):
            said_at = time.time()
            status, body = deployment.a.publish(
                deployment.token, "stream:unheard", {"event": "log", "conversation_id": "unheard", "n": n}
            )
            assert status == 201
            until(lambda seq=body["seq"]: seq in seen.arrived, what="the event on node B")
            delays.append(seen.arrived[body["seq"]] - said_at)
        is_open = threading.Semaphore(0)
        pool = ThreadPoolExecutor(3)
        watches = [
            pool.submit(closing, deployment.a, is_open, Authorization=f"Bearer {owner}"),
            pool.submit(closing, deployment.b, is_open, Authorization=f"Bearer {other}"),
            pool.submit(closing, deployment.b, is_open, Cookie=cookie, Origin=deployment.b.url),
        ]
        for _ in watches:
            assert is_open.acquire(timeout=30)
        code = (
            "from conversations.access.accounts import sign_in as sessions, tokens\n"
            "from conversations.core.principals import SYSTEM\n"
            "import time\n"
            "for name in ('doomed', 'doomed-too'): tokens.revoke_token(SYSTEM, name)\n"
            "sessions.sign_out_everywhere(SYSTEM, 'sam')\nprint(time.time())"
        )
        revoked_at = float(deployment.a.command("shell", "--no-imports", "-c", code).strip().splitlines()[-1])
        ended = [watch.result(60) for watch in watches]
        pool.shutdown()
        refused = deployment.b.publish(owner, "stream:unheard", {"event": "log"})
    finally:
        deployment.redis.start()

    assert max(delays) <= 1.5
    assert [code for code, _ in ended] == [4403, 4403, 4401]
    assert max(at for _, at in ended) - revoked_at <= 1.0
    assert refused[0] == 401
    deployment.are_ready(deployment.a, deployment.b)


def session_of(deployment, name):
    """Make a person with a session; return its key."""
    code = (
        "from conversations.models import Role, User; from importlib import import_module\n"
        "from django.conf import settings\n"
        f"user = User.objects.create(username='{name}'); Role.objects.create(user=user, name='viewer')\n"
        "session = import_module(settings.SESSION_ENGINE).SessionStore(); session['_auth_user_id'] = str(user.pk)\n"
        "session['_auth_user_backend'] = 'django.contrib.auth.backends.ModelBackend'\n"
        "session['_auth_user_hash'] = user.get_session_auth_hash(); session.save(); print(session.session_key)"
    )
    return deployment.a.command("shell", "--no-imports", "-c", code).strip().splitlines()[-1]


def closing(node, is_open, *, Origin=None, **headers):
    """Stay connected; return how and when it ended."""
    with connect(f"ws://127.0.0.1:{node.port}/ws/", additional_headers=headers, origin=Origin) as ws:
        is_open.release()
        with pytest.raises(ConnectionClosed) as closed:
            ws.recv(timeout=60)
        return closed.value.rcvd.code, time.time()


def come_back(deployment, sockets):
    """Stop node B in order while words are said, start it again; everybody is back and level, and misses nothing."""
    key = f"crowd-{sockets}"
    agent = over_http(deployment.a, deployment.token, key, pause=sockets / 1000)
    crowd = Crowd(deployment.b, deployment.token, key, sockets)
    crowd.start()
    until(lambda: crowd.is_level, within=60, what="everybody to be there")
    agent.start()
    until(lambda: crowd.have(1), within=60, what="words for all")

    assert deployment.b.terminate() in (0, -signal.SIGTERM)  # uvicorn ends by the signal it got
    deployment.b.launch()
    until(deployment.b._is_ready, within=START, what="node B to be back")
    ready_at = time.monotonic()
    until(lambda: crowd.is_level, within=60, what="everybody to be back")
    took = time.monotonic() - ready_at
    total = agent.finish()
    until(lambda: crowd.have(total), within=60, what="all that was said")
    crowd.close()

    assert all(numbers == list(range(total)) for numbers in crowd.numbers)
    assert crowd.codes == {1012}
    assert took <= 10
    return f"{sockets} sockets back in {took:.1f} s, {total} words each, no hole"


@pytest.mark.thorough
def test_a_hundred_sockets_are_back_after_a_restart_without_a_hole(deployment):
    come_back(deployment, 100)


@pytest.mark.faults
def test_five_hundred_sockets_are_back_after_a_restart_without_a_hole(deployment, record_property):
    record_property("amount", come_back(deployment, 500))


@pytest.mark.thorough
def test_a_second_server_in_a_held_directory_is_a_web_node_on_postgresql(deployment):
    first = Server(deployment.home / "full", "--no-demo", **deployment.environment)
    second = Server(deployment.home / "full", "--no-demo", **deployment.environment)
    try:
        for node in (first, second):
            node.launch()
            until(node._is_ready, within=START, what="the node to be ready")

        assert "(web node)" in second.output()
        status, _ = second.publish(deployment.token, "stream:second", {"event": "log", "conversation_id": "second"})
        assert status == 201
    finally:
        first.kill()
        second.kill()


def second_serve(server, *arguments):
    """Try to serve in the directory of a running server; return what it printed."""
    log_file = server.data_dir.parent / "second.log"
    process = server.spawn(["serve", "--port", str(free_port()), *arguments], log_file, log_file)
    assert process.wait(60) == 1
    return log_file.read_text()


@pytest.mark.slow
def test_on_sqlite_a_second_server_says_why_not(tmp_path):
    server = Server(tmp_path / "data")
    try:
        server.start()
        plain, both = second_serve(server), second_serve(server, "--web-only")
    finally:
        server.kill()

    assert "is in use by another Switchboard" in plain
    assert "use PostgreSQL to run several" in plain
    assert "--web-only requires SWITCHBOARD_DATABASE_URL" in both
