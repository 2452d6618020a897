"""The tool-calls page, saved views and the API: what is drawn, what a wrong filter says, who may change a view."""

import asyncio
import csv
import json
import re

import pytest

from conversations.core import model_prices, principals
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.core.model_prices import ModelTokenCount
from conversations.events import log
from conversations.models import AuditEntry, Role, SavedView, ToolSchema
from conversations.runs.approvals import decide
from conversations.tool_calls import saved_views
from conversations.tool_calls.listing import activity, export, rows
from conversations.tool_calls.listing.filters import CallFilters
from dashboard.pages import call_list
from tests.dashboard.test_openapi import fits
from tests.support import listed, teamwork, toolcalls
from tests.support.cast import audit_summary, client_of, last_entry
from tests.support.doors import Answer
from tests.support.visits import text_of

pytestmark = pytest.mark.django_db
NARROWED = "?status=failed&agent=Desk&min_ms=1"


def store() -> None:
    """One call that failed and one that did not."""
    log.append(toolcalls.call("desk", 1, duration_ms=1500, result_summary="paid", args={"who": "Ada"}))
    log.append(toolcalls.call("desk", 2, status="error", error="503, two tries", duration_ms=20))


def test_a_row_tells_what_was_called_by_whom_and_what_came_of_it(browser):
    store()

    page = browser.get("/calls/")

    assert page.status_code == 200
    assert 'href="/conversations/desk/?event=1#e1"' in page.content.decode()
    for words in ("look_up", "Desk", '{"who": "Ada"}', "1.5 s", "503, two tries", "desk #1"):
        assert words in text_of(page), words


def test_arguments_that_a_person_changed_are_listed_as_they_ran_and_marked(browser, team):
    teamwork.team()
    body = json.dumps({"params_json_schema": {"type": "object", "properties": {"kind": {"type": "string"}}}})
    ToolSchema.objects.create(hash="ab" * 32, name="file_incident", body=body)
    approval = teamwork.ask(team["operator"], schema="ab" * 32, args={"kind": "water"})
    decide.decide(team["approver"], approval.id, "edit", arguments={"kind": "gas"})
    other = teamwork.ask(team["operator"], key="other", args={"kind": "fire"})
    decide.decide(team["approver"], other.id, "approve")

    shown = text_of(browser.get("/calls/"))
    items = browser.get("/api/v1/tool-calls").json()["items"]
    header, *lines = csv.reader(listed.exported(export.EXPORT, CallFilters(), "csv").splitlines())

    assert 'edited {"kind": "gas"}' in shown
    assert "water" not in shown
    assert shown.count("edited") == 1
    shown_arguments = [(item["arguments"]["kind"], item["ran_with"]["kind"], item["decision"]) for item in items]
    assert shown_arguments == [("fire", "fire", "approve"), ("water", "gas", "edit")]
    columns = [dict(zip(header, line, strict=True)) for line in lines]
    assert [(json.loads(row["ran_with"]), row["decision"]) for row in columns] == [
        ({"kind": "fire"}, "approve"), ({"kind": "gas"}, "edit"),
    ]  # fmt: skip


def test_events_whose_words_are_not_searchable_yet_are_counted(browser, monkeypatch):
    """A few are there a moment later, when the list is loaded again; many are said."""
    store()

    assert "data-behind hidden" in browser.get("/calls/?part=list&q=Ada").content.decode()
    monkeypatch.setattr(call_list, "FAR_BEHIND", 4)
    listing = browser.get("/calls/?part=list&q=Ada")

    assert "data-behind>" in listing.content.decode()
    assert "4 events just recorded are not searchable yet." in text_of(listing)
    assert "data-behind" not in browser.get("/calls/?part=list").content.decode()
    lags = [browser.get(f"/api/v1/tool-calls{query}").json()["lag"] for query in ("?q=Ada", "")]
    assert lags == [4, 0]


def test_how_many_calls_there_are_is_told_and_the_failed_ones_are_striped(browser, monkeypatch):
    store()

    every, done = (browser.get(f"/calls/?part=list{query}").content.decode() for query in ("", "&status=done"))

    figure = every[every.index("<figure") : every.index("</figure>")]
    assert re.search(r'role="img" aria-label="Calls recorded between [^"]* UTC: 2, of which 1 failed"', figure)
    assert re.findall(r'class="(\w+)" d="(M[^"]*)', figure[figure.index("role=") :])[0][0] == "others"
    assert all(f'class="{part}" d="M' in figure for part in ("failed", "stripes"))
    assert "<b>1</b> of 2 calls" in done
    assert "failed</span>" not in done
    assert 'class="failed" d=""' in done
    monkeypatch.setattr(activity, "COUNTED", 1)
    assert re.search(
        r"<b>1\+</b> calls.*Only the newest were counted, back to <time", browser.get("/calls/").content.decode()
    )


def test_what_a_call_gave_is_told_and_a_fault_before_it(browser):
    store()
    log.append(toolcalls.call("desk", 3, status="error", error="busy", output={"receipt": 12}))

    page = text_of(browser.get("/calls/"))

    assert "paid" in page
    assert "busy" in page
    assert "receipt" not in page


def test_who_decided_is_called_by_name_among_the_filters(browser):
    log.append(toolcalls.ours("ours", "run-1", 1, decision="approve"))

    page = browser.get("/calls/").content.decode()

    assert 'name="by" value="user:maria"' in page
    assert re.search(r'title="user:maria">maria</span><output>1</output>', page)


def test_the_tables_behind_the_charts_begin_with_what_is_newest(browser):
    store()

    page = browser.get("/numbers/?last=24h").content.decode()

    table = page[page.index('aria-label="Calls, as a table"') :]
    moments = re.findall(r'<th scope="row"><time datetime="([^"]+)"', table[: table.index("</table>")])
    assert len(moments) > 1
    assert moments == sorted(moments, reverse=True)


def test_costs_are_those_of_known_models_and_a_total_says_where_some_are_unknown(browser):
    for model, tokens in (("gpt-4o", 1_000_000), ("nobodys-model", 5)):
        usage = {"input_tokens": tokens, "output_tokens": tokens}
        output = {"event": "output", "agent": "A", "text": "x", "model": model, "usage": usage}
        log.append([toolcalls.event("turns", output)])
    listed = model_prices.shown(model_prices.cost(ModelTokenCount("gpt-4o", False, 1_000_000, 0, 0, 1_000_000)))

    page = browser.get("/numbers/?last=24h").content.decode()

    assert re.findall(r'data-cell="cost">([^<]*)<', page) == [listed, "–"]
    assert listed.startswith("$")
    assert f"{listed}+" in page
    assert "<dt>Approval wait, median</dt>" in page


def test_a_filter_that_would_leave_nothing_to_choose_is_not_drawn(browser):
    store()
    log.append(toolcalls.ours("ours", "run-1", 1, origin="mcp", mcp_server="map"))

    everything, narrowed = (text_of(browser.get(f"/calls/{query}")) for query in ("", "?agent=Desk"))

    assert "MCP server" in everything
    assert "MCP server" not in narrowed
    assert "Status" not in text_of(browser.get("/calls/?agent=nobody&part=facets"))


def test_filters_combine_and_are_drawn_with_a_way_to_leave_them_out(browser):
    store()

    page = browser.get(f"/calls/{NARROWED}")

    assert page.content.decode().count("data-key=") == 1
    assert 'href="/calls/?agent=Desk&amp;min_ms=1"' in page.content.decode()
    assert 'href="/calls/?agent=Desk&amp;status=failed"' in page.content.decode()


def test_a_part_is_the_list_alone(browser):
    store()

    part = browser.get("/calls/?part=list").content.decode()

    assert part.count("data-key=") == 2
    assert "<html" not in part


def test_an_empty_list_says_whether_anything_was_filtered(browser):
    assert "No tool calls yet" in text_of(browser.get("/calls/"))
    assert "No call matches" in text_of(browser.get("/calls/?agent=nobody"))


def test_a_wrong_filter_is_told_where_it_stands_and_nothing_is_listed(browser):
    store()

    page = browser.get("/calls/?min_ms=soon&status=odd&before=x")

    assert page.status_code == 400
    assert "data-key=" not in page.content.decode()
    assert 'value="soon"' in page.content.decode()
    assert 'aria-describedby="wrong-min_ms"' in page.content.decode()
    for words in (
        "must be a number, 0 or more; got 'soon'",
        "got 'odd'",
        "a cursor from an earlier",
    ):
        assert words in text_of(page), words


def test_the_api_answers_the_same_calls_page_by_page(browser):
    store()
    ids, cursor = [], ""
    while cursor is not None:
        answer = browser.get(f"/api/v1/tool-calls?limit=1&before={cursor}").json()
        ids += [item["id"] for item in answer["items"]]
        cursor = answer["cursor"]

    assert len(ids) == 2
    assert re.findall('data-key="([^"]+)"', browser.get("/calls/").content.decode()) == ids
    wrong = browser.get("/api/v1/tool-calls?status=odd")
    assert (wrong.status_code, wrong.json()["error"]["field"]) == (400, "status")


def fits_document(path, method, answer, status) -> None:
    """Hold a page's answer against the document."""
    fits(path, method, Answer(answer.status_code, {"content-type": answer["Content-Type"]}, answer.json()), status)


@pytest.mark.slow
def test_the_api_has_the_shape_that_it_tells(browser):
    toolcalls.record()
    view = {"name": "Failed", "query": "status=failed"}

    fits_document("/api/v1/tool-calls", "get", browser.get("/api/v1/tool-calls?limit=200"), 200)
    fits_document("/api/v1/tool-calls", "get", browser.get("/api/v1/tool-calls?last=2y"), 400)
    made = browser.post("/api/v1/saved-views", view, content_type="application/json")
    fits_document("/api/v1/saved-views", "post", made, 201)
    again = browser.post("/api/v1/saved-views", view, content_type="application/json")
    fits_document("/api/v1/saved-views", "post", again, 409)
    fits_document("/api/v1/saved-views", "get", browser.get("/api/v1/saved-views"), 200)
    address = f"/api/v1/saved-views/{made.json()['id']}"
    named = browser.put(address, {"name": "Broken"}, content_type="application/json")
    fits_document("/api/v1/saved-views/{number}", "put", named, 200)
    fits_document("/api/v1/saved-views/{number}/removal", "post", browser.post(f"{address}/removal"), 200)
    fits_document("/api/v1/saved-views/{number}/removal", "post", browser.post(f"{address}/removal"), 404)


def test_a_view_is_saved_used_renamed_and_removed_and_each_is_in_the_audit_log(team):
    viewer = client_of(team["viewer"])

    made = viewer.post("/calls/views/", {"name": " Failed  calls ", "query": "?status=failed&part=list&before=1.2.3"})
    view = SavedView.objects.get()
    assert (made.status_code, made["Location"]) == (302, "/calls/?status=failed")
    assert (view.name, view.query, view.made_by) == ("Failed calls", "status=failed", "user:vera")
    assert 'href="/calls/?status=failed"' in client_of(team["auditor"]).get("/calls/").content.decode()
    assert audit_summary(last_entry()) == ("user:vera", "save_view", "view:Failed calls", "done")

    viewer.post(f"/calls/views/{view.pk}/", {"name": "Broken"})
    assert audit_summary(last_entry()) == ("user:vera", "rename_view", "view:Broken", "done")
    assert SavedView.objects.get().name == "Broken"

    viewer.post(f"/calls/views/{view.pk}/", {"name": "Broken", "verb": "remove"})
    assert audit_summary(last_entry()) == ("user:vera", "remove_view", "view:Broken", "done")
    assert not SavedView.objects.exists()


def test_only_its_maker_and_admins_change_a_view(team):
    view = saved_views.save_view(team["viewer"], "Mine", "")

    with pytest.raises(NotAllowed):
        saved_views.rename_view(team["operator"], view.pk, "Yours")
    with pytest.raises(NotAllowed):
        saved_views.remove_view(team[""], view.pk)
    assert AuditEntry.objects.filter(outcome="refused").count() == 2

    saved_views.rename_view(team["admin"], view.pk, "Ours")
    assert SavedView.objects.get().name == "Ours"


@pytest.mark.parametrize(
    ("name", "query", "error"),
    [("", "", Invalid), ("x" * 81, "", Invalid), ("Odd", "status=odd", Invalid), ("Long", "q=" + "x" * 5000, Invalid),
     ("Taken", "", Conflict)],
)  # fmt: skip
def test_what_cannot_be_saved_is_refused(team, name, query, error):
    saved_views.save_view(team["viewer"], "Taken", "")

    with pytest.raises(error):
        saved_views.save_view(team["viewer"], name, query)

    assert SavedView.objects.count() == 1


def test_a_view_that_is_gone_is_not_found(team):
    with pytest.raises(NotFound):
        saved_views.rename_view(team["admin"], 7, "x")


def test_a_view_that_is_taken_is_told_on_the_page(browser, team):
    saved_views.save_view(team["viewer"], "Taken", "")

    page = browser.post("/calls/views/", {"name": "Taken", "query": "agent=Desk"})

    assert page.status_code == 409
    assert "There is already a view named 'Taken'" in text_of(page)
    assert 'value="agent=Desk"' in page.content.decode()
    assert 'data-address="/calls/?agent=Desk"' in page.content.decode()


def test_an_export_is_entered_before_it_is_sent(team):
    client = client_of(team["auditor"])

    answer = client.head("/calls/export/csv?status=failed")

    assert (answer.status_code, answer["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert audit_summary(last_entry()) == ("user:audrey", "export_calls", "tool-calls.csv", "done")
    assert json.loads(last_entry().correlation)["query"] == "status=failed"
    assert client.get("/calls/export/pdf").status_code == 404
    assert client.get("/calls/export/csv?status=odd").status_code == 400


@pytest.mark.django_db(transaction=True)
def test_an_export_ends_when_the_right_is_taken_away(team):
    for number in range(export.BATCH + 1):
        log.append(toolcalls.call("desk", number))
    sent = []

    async def read() -> None:
        async for piece in export.EXPORT.stream(CallFilters(), "jsonl", principals.user_principal("audrey")):
            sent.append(piece)
            if piece:
                await asyncio.to_thread(Role.objects.all().delete)

    with pytest.raises(NotAllowed):
        asyncio.run(read())
    assert sum(piece.count(b"\n") for piece in sent) == export.BATCH


def test_one_answer_tells_no_more_than_its_bound_and_goes_on(browser, monkeypatch):
    for number in range(7):
        log.append(toolcalls.call("desk", number, args={"who": "x" * 1000}))
    monkeypatch.setattr(rows, "MAX_BODIES", 2_500)

    ids, before = [], ""
    while before is not None:
        answer = browser.get("/api/v1/tool-calls", {"limit": 5, "before": before}).json()
        assert 1 <= len(answer["items"]) <= 2
        ids += [item["call_id"] for item in answer["items"]]
        before = answer["cursor"]

    assert ids == [f"call-{number}" for number in reversed(range(7))]
    lines = listed.exported(export.EXPORT, CallFilters(), "jsonl").splitlines()
    assert [json.loads(line)["call_id"] for line in lines] == ids


@pytest.mark.slow
def test_an_export_reads_more_calls_at_a_time_while_they_are_short(django_assert_max_num_queries):
    for number in range(400):
        log.append(toolcalls.call("desk", number))

    with django_assert_max_num_queries(60):
        pages = list(listed.pieces(export.ExportReader(CallFilters())))

    assert sum(map(len, pages)) == 400


def test_an_export_reads_few_calls_at_a_time_where_they_are_long(monkeypatch):
    monkeypatch.setattr(rows, "MAX_BODIES", 5_000)
    for number in range(120):
        log.append(toolcalls.call("desk", number, result_summary="x" * (1_000 if 40 <= number < 80 else 1)))
    reader, place, sizes = export.ExportReader(CallFilters()), None, []

    while place is not None or not sizes:
        items, place = reader(place)
        sizes.append((reader.size, len(items)))

    assert sum(count for _, count in sizes) == 120
    assert max(size for size, _ in sizes) > export.BATCH
    assert export.BATCH in {size for size, _ in sizes[1:-1]}
