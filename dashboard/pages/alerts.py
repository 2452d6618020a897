"""The alerts page, for admins: the alarm rate, open alarms, rules, and deliveries that failed."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from conversations.alerts import edit_rules, handle_alarms, mail_sender, view
from conversations.alerts.kinds import GROUPINGS, KINDS
from conversations.alerts.rule_fields import FORMS, InvalidFields, RuleFields
from conversations.core import hidden_characters
from conversations.core.errors import NotAllowed, NotFound, SwitchboardError
from conversations.core.micros import to_datetime
from conversations.core.url_converters import row_number
from conversations.models import Agent, AlertRule
from conversations.runs.policy.file_format import seconds_of, time_of
from dashboard.pages.base_context import render_page
from dashboard.pages.errors import status_of
from dashboard.require_permission import require_permission

TEXTS = ("name", "kind", "after", "agent", "grouping", "form", "url", "recipients", "reason")  # as in the form
BOXES = ("is_enabled", "sends_end")
ENTERED = (*TEXTS, *BOXES, "number", "version")
SHELVES = {"1 h": "1 hour", "8 h": "8 hours", "1 d": "1 day", "7 d": "7 days"}
DONE = {
    "saved": "Rule saved. It applies to what happens from now on.",
    "removed": "Rule removed. Its open alarms are closed, and it sends nothing more.",
    "tested": "Test queued. Its outcome appears below within a few seconds.",
    "shelved": "Shelved. Alarms still open when the shelf ends are sent then.",
    "unshelved": "No longer shelved.",
    "ended": "Alarm closed. The next case opens a new one.",
    "retried": "Queued again.",
    "discarded": "Discarded.",
}
LISTED = 50


@require_safe
@require_permission("alerts")
def alerts(request: HttpRequest) -> HttpResponse:
    """Show the page; `?new=1` opens the form, `?edit=` fills it with a rule; `?part=state` returns only rate and
    alarms."""
    edited = request.GET.get("edit", "")
    if edited:
        return _draw(request, entered=_entered_of(_rule(edited)))
    return _draw(request, entered={"is_enabled": "yes"} if "new" in request.GET else None)


@require_POST
@require_permission("alerts")
def rules(request: HttpRequest) -> HttpResponse:
    """Create a rule, or change the rule that `number` names. A new signing secret is shown once."""
    entered = {name: request.POST.get(name, "").strip() for name in ENTERED}
    try:
        fields, reason = _fields(entered), entered["reason"][:2000]
        if not entered["number"]:
            rule = edit_rules.make_rule(request.user, fields, reason=reason)
            return _draw(request, secret_of=rule) if rule.secret else _back("saved")
        number, version = row_number(entered["number"]), row_number(entered["version"])
        had_secret = AlertRule.objects.filter(id=number).exclude(secret="").exists()
        rule = edit_rules.change_rule(request.user, number, fields, version=version, reason=reason)
    except SwitchboardError as error:
        return _draw(request, error, entered=entered)
    return _draw(request, secret_of=rule) if rule.secret and not had_secret else _back("saved")


@require_POST
@require_permission("alerts")
def rule(request: HttpRequest, number: int, verb: str) -> HttpResponse:
    """Perform what a button of a rule stands for (`verb`)."""
    if verb == "secrets":
        try:
            return _draw(request, secret_of=edit_rules.renew_secret(request.user, number))
        except SwitchboardError as error:
            return _draw(request, error)
    alarm = row_number(request.POST["alarm"]) if request.POST.get("alarm") else None
    reason = request.POST.get("reason", "").strip()
    verbs: dict[str, tuple[str, Callable[[], object]]] = {
        "removals": ("removed", lambda: edit_rules.remove_rule(request.user, number, reason=reason)),
        "tests": ("tested", lambda: edit_rules.send_test(request.user, number)),
        "shelves": (
            "shelved",
            lambda: handle_alarms.shelve(
                request.user, number, seconds_of(request.POST.get("for", "")) or 0, alarm=alarm, reason=reason
            ),
        ),
        "unshelvings": ("unshelved", lambda: handle_alarms.unshelve(request.user, number, alarm=alarm)),
    }
    return _do(request, verbs, verb)


@require_POST
@require_permission("alerts")
def ends(request: HttpRequest, number: int) -> HttpResponse:
    """Close an alarm."""
    return _do(request, {"": ("ended", lambda: handle_alarms.end_alarm(request.user, number))}, "")


@require_POST
@require_permission("alerts")
def delivery(request: HttpRequest, id: str, verb: str) -> HttpResponse:
    """Retry or discard a dead letter (`verb`)."""
    verbs: dict[str, tuple[str, Callable[[], object]]] = {
        "retries": ("retried", lambda: handle_alarms.retry_delivery(request.user, id)),
        "discards": ("discarded", lambda: handle_alarms.discard_delivery(request.user, id)),
    }
    return _do(request, verbs, verb)


def _do(request: HttpRequest, verbs: dict[str, tuple[str, Callable[[], object]]], verb: str) -> HttpResponse:
    if verb not in verbs:
        raise NotFound("There is no such page.")
    done, act = verbs[verb]
    try:
        act()
    except SwitchboardError as error:
        return _draw(request, error)
    return _back(done)


def _back(done: str) -> HttpResponse:
    return HttpResponseRedirect(reverse("alerts", query={"done": done}))


def _fields(entered: dict[str, str]) -> RuleFields:
    return RuleFields(
        name=entered["name"], kind=entered["kind"], form=entered["form"], url=entered["url"],
        recipients=entered["recipients"], after_s=entered["after"], agent=entered["agent"],
        grouping=entered["grouping"] or "conversation",
        is_enabled=bool(entered["is_enabled"]), sends_end=bool(entered["sends_end"]),
    )  # fmt: skip


def _rule(number: str) -> AlertRule:
    rule = AlertRule.objects.filter(id=row_number(number), removed_at=None).first()
    if rule is None:
        raise NotFound(edit_rules.NO_RULE)
    return rule


def _entered_of(rule: AlertRule) -> dict[str, str]:
    """Return the form's fields for an existing rule; its destination address is never sent to the browser."""
    fields = {name: getattr(rule, name) for name in ("name", "kind", "form", "recipients", "agent", "grouping")}
    boxes = {name: "yes" if getattr(rule, name) else "" for name in BOXES}
    after = time_of(rule.after_s) if rule.after_s else ""
    return fields | boxes | {"after": after, "number": str(rule.id), "version": str(rule.version)}


def _draw(
    request: HttpRequest,
    error: SwitchboardError | None = None,
    *,
    entered: dict[str, str] | None = None,
    secret_of: AlertRule | None = None,
) -> HttpResponse:
    if isinstance(error, NotAllowed):
        raise error
    faults, elsewhere = _placed(error, has_form=entered is not None)
    state = request.GET.get("state", "open")
    shown_alarms, cursor = view.alarms(
        state=state if state in view.STATES else "open",
        before=row_number(request.GET.get("before", "")) or None, limit=LISTED,
    )  # fmt: skip
    part = {name: request.GET[name] for name in ("state", "before") if name in request.GET}
    template = "partials/alerts_state.html" if request.GET.get("part") == "state" else "alerts.html"
    return render_page(
        request, template, status=status_of(error), error=elsewhere, fault=dict.fromkeys(TEXTS, "") | faults,
        focus=next((name for name in TEXTS if name in faults), ""),
        entered=None if entered is None else dict.fromkeys(ENTERED, "") | entered, secret_of=secret_of,
        figures=view.figures(), part_href=reverse("alerts", query={"part": "state"} | part),
        rules=view.rules(), alarms=shown_alarms, state=state, older=cursor, dead=view.deliveries("failed", LISTED),
        latest=view.latest_deliveries(20), kinds=KINDS, forms=FORMS,
        groupings=GROUPINGS, shelves=SHELVES, can_mail=mail_sender.can_send(), moment=to_datetime,
        text=hidden_characters.spelled_out, done=DONE.get(request.GET.get("done", ""), "") if error is None else "",
        agents=list(Agent.objects.values_list("name", flat=True).distinct().order_by("name")[:200]),
    )  # fmt: skip


def _placed(error: SwitchboardError | None, *, has_form: bool) -> tuple[dict[str, str], str]:
    """Return an error as sentences: those beside the form's fields, and the rest."""
    errors = error.faults if isinstance(error, InvalidFields) else [error] if error else []
    beside, rest = dict[str, str](), list[str]()
    for fault in errors:
        field = (fault.field or "").removesuffix("_s")
        if has_form and field in TEXTS:
            beside.setdefault(field, hidden_characters.spelled_out(fault.sentence_beside))
        else:
            rest.append(hidden_characters.spelled_out(fault.sentence))
    return beside, " ".join(rest)
