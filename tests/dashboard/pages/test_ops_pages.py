"""The ops page and its quarantine, as a browser sees them: per role, in every state, with hostile content."""

import re

import pytest
from django.db import connection

from conversations.access.accounts import tokens
from conversations.core import node_heartbeat
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import AuditEntry, Node, Quarantine
from conversations.realtime.deployment import bounded
from conversations.rendering import hex_dump
from conversations.telemetry_export import cursor
from conversations.transport import relay_start
from tests.support import quarantined
from tests.support.cast import CAST, client_of
from tests.support.collecting import ran
from tests.support.drawn_html import Seen
from tests.support.growth import ratio, read_numbers
from tests.support.hostile import payloads
from tests.support.quarantined import node, post, stream
from tests.support.visits import text_of

pytestmark = pytest.mark.django_db

SAID = {"type": "message", "sender": "agent:Triage", "recipient": "agent:Dialogue", "content": "Somebody is here."}
SAMPLE = 60


@pytest.fixture
def with_redis(settings, db):
    relay_start.ensure_start()  # as a process does that is given Redis
    settings.CONFIG = settings.CONFIG.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"})


def shape(response):
    """Return the elements of a page and their attributes' names, without what marks hidden characters and folds."""
    page = re.sub(r'<span class="hidden-char"[^>]*>[^<]*</span>', "", response.content.decode())
    main = Seen(page[page.index("<main") : page.index("</main>")])
    return re.findall(r"<(\w+)", page), [fault for fault in main.faults if "script" in fault or " on" in fault]


GETS = ["/ops/", "/ops/?part=state", "/ops/quarantine/", "/ops/quarantine/1/"]


@pytest.mark.parametrize("role", [role for role in CAST.values() if role not in ("admin", "")])
def test_only_the_admin_is_led_there(team, role):
    client = client_of(team[role])

    response, front = client.get("/ops/?part=state"), client.get("/").content.decode()

    assert (response.status_code, "may not" in text_of(response)) == (403, True)
    assert AuditEntry.objects.get().outcome == "refused"
    assert [page for page in ("/ops/", "/tokens/", "/alerts/", "/policies/", "/redaction/") if page in front] == []


def test_the_admin_finds_the_way(admin):
    front = admin.get("/").content.decode()

    assert re.search(r'href="/ops/"', front)
    assert re.search(r'href="/tokens/"', front)
    assert 'href="/ops/" aria-current="page"' in admin.get("/ops/quarantine/").content.decode()


@pytest.mark.parametrize("path", GETS)
def test_a_program_may_read_it_with_an_admins_token(path):
    quarantined.quarantine(SAID, pk=1)
    secret = tokens.make_token(SYSTEM, "ci", "admin")

    assert client_of().get(path, headers={"Authorization": f"Bearer {secret}"}).status_code == 200


def test_an_embedded_deployment_says_so(admin):
    page_text = text_of(admin.get("/ops/"))

    assert "Redis is not configured; agents connect over HTTP" in page_text
    assert "No processes yet" in page_text
    assert "Nothing waiting" in page_text
    assert "No recorder is active" not in page_text
    assert f"{connection.vendor}".replace("sqlite", "SQLite").replace("postgresql", "PostgreSQL") in page_text


def test_redis_without_a_recorder_is_a_warning(admin, with_redis):
    assert "No recorder is active: messages on Redis are not stored" in text_of(admin.get("/ops/"))


def test_processes_are_told_with_their_figures(admin, with_redis):
    node("rec-1:9:1", "recorder", active=True, lag_s=0.4, events_per_s=12.5, hot=3, redis="ok", clock_skew_ms=0.4)
    node("rec-2:9:1", "recorder", active=False)
    node(
        "web-1:9:1",
        "web",
        sockets=1312,
        response_readers=27,
        rings_bytes=1024,
        rings_limit=48 << 20,
        followers_bytes=7,
        followers_limit="many",
        events_per_s=2.5,
        warnings=["PostgreSQL is old."],
        clock_skew_ms=-2300.0,
    )
    node("web-2:9:1", "web", warnings=["PostgreSQL is old."], versions={"sqlite": "3.40.1", "redis": "7.0.15"})
    warnings = ["MCP server desk of office: no answer"]
    node("worker-1:9:1", "worker", clock_skew_ms=-2300.0, running=3, done=1041, warnings=warnings)
    node("web-0:9:1", "web", age_s=60)

    page_text = text_of(admin.get("/ops/"))

    assert "Redis lag 0.4 s" in page_text
    assert "Events per second 15.0" in page_text
    assert "Open sockets 1,312" in page_text
    assert "Responses read 27" in page_text
    assert "page cache 1 KiB of 48 MiB response buffers 7 B" in page_text
    assert re.search(r"recorder rec-1:9 active 1\.2\.3", page_text)
    assert re.search(r"recorder rec-2:9 standby", page_text)
    assert re.search(r"web web-0:9 gone last seen", page_text)
    assert re.search(r"web-\d:9, web-\d:9: PostgreSQL is old\.", page_text)
    assert "runs now 3 runs ended 1,041" in page_text
    assert "worker-1:9: MCP server desk of office: no answer" in page_text
    assert "worker-1:9: Its clock is 2.3 s behind the database's." in page_text
    assert page_text.count("Its clock") == 1
    assert "Software SQLite 3.40.1, Redis 7.0.15" in page_text


@pytest.mark.parametrize(
    ("facts", "warning"),
    [
        ({"active": True, "lag_s": 61.0}, "The recorder is 61 s behind Redis."),
        ({"active": True, "redis": "connection refused"}, "cannot reach Redis: connection refused"),
        ({"active": False}, "No recorder is active"),
    ],
)
def test_a_recorder_in_trouble_is_a_warning(admin, with_redis, facts, warning):
    node("rec-1:9:1", "recorder", **facts)

    assert warning in text_of(admin.get("/ops/"))


def test_a_recorder_that_died_is_not_active(admin, with_redis):
    node("rec-1:9:1", "recorder", age_s=node_heartbeat.GONE_AFTER + 5, active=True, lag_s=0.0)

    assert "No recorder is active" in text_of(admin.get("/ops/"))


def test_different_versions_are_a_warning(admin):
    node("web-1:9:1", "web", version="1.0")
    node("web-2:9:1", "web", version="1.1")

    assert "Processes run different versions: 1.0, 1.1." in text_of(admin.get("/ops/"))


@pytest.mark.parametrize("facts", ["", "[]", "no JSON", '{"sockets": "many", "warnings": "x", "lag_s": true}'])
def test_facts_of_a_wrong_kind_are_no_facts(admin, facts):
    node("web-1:9:1", "web")
    Node.objects.update(facts=facts)

    assert "Open sockets unknown" in text_of(admin.get("/ops/"))


def test_streams_are_found_by_name(admin, with_redis):
    for number in range(30):
        stream(f"stream:incident-{number:02}", at_ms=1_750_000_000_000 + number, read=number)

    everything, some = text_of(admin.get("/ops/")), text_of(admin.get("/ops/?stream=incident-07"))

    assert "30 known" in everything
    assert "stream:incident-29" in everything
    assert "stream:incident-07" not in everything
    assert "Showing the 20 most recently read of 30" in everything
    assert "stream:incident-07" in some
    assert "stream:incident-29" not in some
    assert "No stream name matches" in text_of(admin.get("/ops/?stream=nowhere"))


def test_topics_without_a_conversation_show_their_newest(admin, with_redis):
    for number in range(5):
        post("signal:tick", {"n": number}, sent_at=None if number == 4 else 1)
    post("control:Dialogue", {"order": "stop"}, sent_at=1)

    page_text = text_of(admin.get("/ops/"))

    assert re.search(r"control:Dialogue 1 .*signal:tick 5 ", page_text)
    assert '{"n": 4} unsent to Redis' in page_text
    assert '{"n": 1}' not in page_text
    assert "Unsent to Redis 1" in page_text


def test_counts_are_bounded():
    for number in range(4):
        quarantined.quarantine(SAID, entry=f"{number}-0")

    assert [str(bounded(Quarantine.objects.open(), most)) for most in (3, 4, 5)] == ["3+", "4", "4"]


@pytest.mark.slow
def test_the_page_is_quick_when_it_is_full(admin, with_redis):
    Quarantine.objects.bulk_create(
        Quarantine(source="chat:x", entry=f"{n}-0", at=n, reason="r", raw=b"x" * 65_536, size=65_536, digest="d")
        for n in range(200)
    )
    for number in range(1000):
        stream(f"stream:incident-{number}")
    admin.get("/ops/")

    response = admin.get("/ops/?part=state")

    assert "200" in text_of(response)
    assert ratio(lambda: admin.get("/ops/?part=state"), read_numbers, below=20) < 20
    assert len(response.content) < 100_000


def test_hidden_characters_and_terminal_escapes_are_shown(admin):
    message = quarantined.quarantine("a\u202eb\x1b[2Jc\x00d".encode(), source="chat:x\u202ey", reason="why\u200bnot")

    for path in (f"/ops/quarantine/{message.pk}/", "/ops/quarantine/", "/ops/"):
        page = admin.get(path).content.decode()
        assert not set("\u202e\x1b\x00\u200b") & set(page)
        for name in ("U+202E", "U+001B", "U+0000", "U+200B"):
            assert name in page


@pytest.mark.slow
def test_hostile_words_stay_words_everywhere(admin, with_redis):
    harmless = quarantined.quarantine(b"x", source="chat:x", reason="x", conversation="x", entry="1-0")
    plain = shape(admin.get(f"/ops/quarantine/{harmless.pk}/"))
    for number, payload in enumerate(payloads(SAMPLE)):
        text = log.records.clean_text(payload)
        assert Seen(hex_dump.draw(text.encode()).html).faults == []
        Quarantine.objects.filter(pk=harmless.pk).update(
            source=text[:250], reason=text, raw=text[:3000].encode(), size=len(text[:3000].encode())
        )

        tags, faults = shape(admin.get(f"/ops/quarantine/{harmless.pk}/"))

        assert faults == []
        assert set(tags) <= {*plain[0], "details", "summary", "span"}, payload
        if number % 10 == 0:
            page = admin.get("/ops/?part=state").content.decode()
            assert [
                tag for tag in re.findall(r"<(\w+)", page) if tag in ("script", "img", "iframe", "style", "b ")
            ] == []


@pytest.mark.slow
def test_hostile_words_in_posts_and_streams_stay_words(admin, with_redis):
    plain = {"div", "span", "details", "summary", "button", "bdi", "code"}
    post("signal:x", {"x": "x"})
    stream("stream:x")
    known = set(re.findall(r"<(\w+)", admin.get("/ops/?part=state").content.decode()))
    for payload in payloads(SAMPLE):
        post(f"signal:{log.records.clean_text(payload)[:200]}", {payload: [payload]})

        page = admin.get("/ops/?part=state").content.decode()

        assert set(re.findall(r"<(\w+)", page)) <= known | plain, payload


def test_the_export_of_traces_says_what_was_sent_what_waits_and_why(team, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"otlp_endpoint": "http://127.0.0.1:9"})
    begun = cursor.begin()
    away = "the collector does not take them: HTTP 503"
    assert cursor.move(begun, begun.to(runs=12, spans=1_234, refused=2, refusal="<b>too old</b>", trouble=away))
    ran("exported")

    page = client_of(team["admin"]).get("/ops/")

    assert "Traces exported 12 runs, 1,234 spans; 2 spans refused: <b>too old</b>; 1 waiting" in text_of(page)
    assert f"Traces of runs are not exported: {away}. Nothing is lost" in text_of(page)
    assert b"<b>too old" not in page.content
