"""An auditor's way through the pages: a bundle that verifies on its own, the record checked, a secret revealed."""

import re
import zipfile
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.evidence.test_bundle import verified
from tests.support.live import Server, until

SECRET = "sb_" + "a1B2" * 10
ENTER = f"""
from conversations.access.audit import chain
from conversations.core.principals import user_principal
from conversations.core.write_transaction import write_transaction
with write_transaction():
    chain.add_entry(user_principal("maria"), "look", "thing:auditor", reason="with {SECRET} in hand")
"""


def test_a_downloaded_bundle_is_verified_by_its_own_program(
    page: Page, server: Server, token: str, tmp_path: Path
) -> None:
    key = "auditor-bundle"
    payload = {
        "type": "message",
        "conversation_id": key,
        "sender": "agent:Ada",
        "recipient": "agent:Ben",
        "content": "hi",
    }
    server.publish(token, f"chat:{key}", payload, f"{key}-1")
    page.goto(f"/conversations/{key}/")
    page.get_by_role("button", name="Copy, download, print").click()
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Download evidence").click()
    downloading.value.save_as(tmp_path / "bundle.zip")
    zipfile.ZipFile(tmp_path / "bundle.zip").extractall(tmp_path / "bundle")

    code, output = verified(tmp_path / "bundle")

    assert code == 0
    assert "OK: 1 conversation, nothing was changed" in output.splitlines()


def test_the_whole_record_is_verified_in_the_background(page: Page, server: Server) -> None:
    until(
        lambda: page.request.get("/checkpoint").ok,
        within=150,
        what="the first signature, a minute after the first entry",
    )
    page.goto("/audit/")
    page.get_by_role("button", name="Verify the whole record").click()

    expect(page.get_by_text("State and rights match the events and audit entries")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("button", name="Verify the whole record")).to_be_visible(timeout=60_000)
    assert page.locator('.notice[data-tone="failed"]').count() == 0


def test_a_masked_secret_is_revealed_once_and_the_look_is_an_entry(page: Page, server: Server) -> None:
    server.command("shell", "-v0", "-c", ENTER)
    page.goto("/audit/?who=user%3Amaria&verb=look&target=thing%3Aauditor")
    entry = page.locator(".audit-table [data-key]").first
    entry.get_by_role("link").first.click()
    assert SECRET not in page.content()

    page.get_by_role("button", name="Reveal secrets").click()

    expect(page.locator(".entry-open:visible")).to_contain_text(SECRET)
    page.goto("/audit/")
    expect(page.locator(".audit-table [data-key]").first).to_contain_text(re.compile("reveal", re.IGNORECASE))
    assert SECRET not in page.content()
