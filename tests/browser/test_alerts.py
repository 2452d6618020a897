"""The page of alerts in a real browser: a rule and its messages, shelves, dead letters, and every look."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import Faults, in_every_look, sign_in, work
from tests.support.alerting import Receiver, receiving
from tests.support.live import Server, until

HOOK = "https://example.com/hook"


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    """A server that may send to loopback, and gives up soon."""
    hosts = {"SWITCHBOARD_ALERT_HOSTS": "127.0.0.1", "SWITCHBOARD_ALERT_RETRY_S": "0.001"}
    started = Server(SWITCHBOARD_TEAMS="", SWITCHBOARD_EMAIL_URL="smtp://127.0.0.1:9", **hosts).start()
    yield started
    started.terminate()


@pytest.fixture(scope="module")
def desk(chromium: Browser, served: Server) -> Iterator[BrowserContext]:
    """The owner's browser at it."""
    context = chromium.new_context(base_url=served.url, viewport={"width": 1440, "height": 900})
    sign_in(served, context)
    yield context
    context.close()


@pytest.fixture
def alerts(desk: BrowserContext, window: Page, served: Server) -> Iterator[Page]:
    """The page, open, without rules; nothing may have gone wrong in it at the end."""
    work(served, "AlertRule.objects.all().delete()")
    faults = Faults(desk, served)
    window.goto("/alerts/")
    yield window
    assert [fault for fault in faults.noted if "422" not in fault] == []  # what a form's errors are answered with


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


def add(page: Page, name: str, url: str, kind: str = "Run failed") -> str:
    """Add a rule as the admin does; return its secret."""
    page.get_by_role("link", name="Add rule").click()
    form = page.locator("#rule")
    form.get_by_label("Name").fill(name)
    form.get_by_label(kind).check()
    form.get_by_label("URL").fill(url)
    form.get_by_role("button", name="Add rule").click()
    return page.get_by_label(f"Signing secret of {name}", exact=True).input_value()


def rule_of(kind: str, name: str) -> str:
    return f"from tests.support.alerting import *; rule({kind!r}, name={name!r}, url={HOOK!r})"


@pytest.mark.slow
def test_a_rule_is_added_tested_and_a_failure_is_sent_and_shown_live(
    alerts: Page, served: Server, receiver: Receiver
) -> None:
    expect(alerts.get_by_text("No rules yet")).to_be_visible()
    secret = add(alerts, "On call", receiver.url)
    alerts.goto("/alerts/")
    expect(alerts.get_by_text(secret)).to_have_count(0)

    alerts.get_by_role("button", name="Send test of On call").click()
    expect(alerts.get_by_text("Test queued")).to_be_visible()
    until(lambda: len(receiver.posts) == 1, within=30, what="the test to arrive")
    work(served, "from tests.support import alerting; alerting.fail('tram', error='out of power')")
    until(lambda: len(receiver.posts) == 2, within=30, what="the alarm to arrive")

    assert all(post.is_signed_by(secret) for post in receiver.posts)
    assert receiver.posts[1].payload["data"]["url"] == f"{served.url}/conversations/tram/?event=2#e2"
    expect(alerts.locator("live-state")).to_have_text("Live")
    row = alerts.get_by_role("region", name="Alarms").get_by_role("row").nth(1)
    expect(row).to_contain_text("Run failed: failed (error)")
    row.get_by_role("link", name="tram").click()
    expect(alerts.locator("#e2")).to_be_visible()


@pytest.mark.thorough
def test_the_form_is_filled_and_saved_by_keyboard_alone(alerts: Page) -> None:
    alerts.get_by_role("link", name="Add rule").focus()
    alerts.keyboard.press("Enter")
    alerts.get_by_label("Name").focus()
    alerts.keyboard.type("By keyboard")
    alerts.keyboard.press("Tab")
    alerts.keyboard.press("Space")
    alerts.keyboard.press("Tab")
    alerts.keyboard.type("15 min")
    alerts.get_by_label("URL").focus()
    alerts.keyboard.type(HOOK)
    alerts.keyboard.press("Enter")

    expect(alerts.get_by_label("Signing secret of By keyboard")).to_be_visible()
    expect(alerts.get_by_role("region", name="Rules")).to_contain_text("By keyboard")


@pytest.mark.thorough
def test_what_is_wrong_stands_beside_its_field(alerts: Page) -> None:
    alerts.get_by_role("link", name="Add rule").click()
    alerts.get_by_label("Name").fill("Inside")
    alerts.get_by_label("URL").fill("http://10.0.0.1/hook")
    alerts.locator("#rule").get_by_role("button", name="Add rule").click()

    url = alerts.get_by_label("URL")
    expect(url).to_have_attribute("aria-invalid", "true")
    expect(url).to_have_accessible_description(
        "10.0.0.1 is not a public address; SWITCHBOARD_ALERT_HOSTS can allow it."
    )
    expect(alerts.get_by_label("Name")).to_have_value("Inside")


@pytest.mark.thorough
def test_a_rule_is_shelved_with_an_end_and_removed(alerts: Page, served: Server) -> None:
    work(served, rule_of("record_gap", "Gaps"))
    alerts.reload()
    alerts.get_by_role("button", name="Shelve Gaps").click()
    form = alerts.get_by_role("form", name="Shelve Gaps")
    form.get_by_label("For").select_option("8 hours")
    form.get_by_label("Reason").fill("the broker moves")
    form.get_by_role("button", name="Shelve").click()
    expect(alerts.get_by_text("shelved until")).to_be_visible()

    alerts.get_by_role("button", name="Unshelve Gaps").click()
    expect(alerts.get_by_text("No longer shelved.")).to_be_visible()
    alerts.get_by_role("button", name="Remove Gaps").click()
    alerts.get_by_role("button", name="Remove rule").click()

    expect(alerts.get_by_text("No rules yet")).to_be_visible()


@pytest.mark.thorough
def test_a_dead_letter_is_sent_again(alerts: Page, receiver: Receiver) -> None:
    receiver.answers += [410]
    add(alerts, "Fragile", receiver.url)
    alerts.get_by_role("button", name="Send test of Fragile").click()
    expect(alerts.get_by_text("Test queued")).to_be_visible()
    until(lambda: receiver.requests == 1, within=30, what="the refusal")

    letters = alerts.get_by_role("region", name="Dead letters")
    until(lambda: alerts.goto("/alerts/") and letters.count(), within=30, what="the dead letter to be shown")
    expect(letters).to_contain_text("HTTP 410")
    letters.get_by_role("button", name="Send again").click()
    expect(letters).to_have_count(0)
    until(lambda: len(receiver.posts) == 1, within=30, what="it to arrive")


@pytest.mark.thorough
def test_axe_finds_nothing_and_nothing_spills(alerts: Page, served: Server) -> None:
    work(served, "\n".join([
        "from tests.support.alerting import *",
        "from conversations.alerts import deliveries, handle_alarms",
        f"a = rule('run_failed', name='Failures ' + 'of every agent ' * 5, url={HOOK!r}, is_enabled=False)",
        f"b = rule('approval_waiting', name='Slow', after_s=900, url={HOOK!r}, form='slack', is_enabled=False)",
        "c = rule('record_gap', name='Mail', form='email', recipients='ops@example.com, night@example.com')",
        "handle_alarms.shelve(SYSTEM, b.id, 3600, reason='known')",
        "for n in range(9):",
        "    Alarm.objects.create(rule=(a, b)[n % 2], group=str(n), kind=(a, b)[n % 2].kind, cause='failed (error)',"
        " conversation='x' * 200 if n == 3 else f'c{n}', seq=2, agent='Dialogue', detail='word ' * 50, count=n,"
        " opened_at=database_now(), last_at=database_now())",
        "for n in range(3):",
        "    d = deliveries.enqueue(a, 'test', database_now())",
        "    AlertDelivery.objects.filter(id=d.id).update(status='failed', error='no answer within 10 s', attempts=15)",
    ]))  # fmt: skip
    faults = {}
    for path, name in (("/alerts/", "list"), ("/alerts/?new=1", "form"), ("/alerts/?state=closed", "closed")):
        alerts.goto(path)
        faults |= in_every_look(alerts, name)

    assert faults == {}
