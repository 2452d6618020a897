"""Approvals by always rules: of a call that is about to be asked about, and of what waits already.

A use is counted in the transaction that records the approval, so that n uses are n, however many workers count. Nothing
is approved while the conversation is paused or held, where the policy denies or has a person decide, where the rule's
maker may not decide any more, or may not decide about this run (four eyes). Rules are about what agents do: a call that
a person has made again waits for a person.
"""

from collections.abc import Iterator

from django.db.models import F, OuterRef, Q, Subquery

from conversations import always, audit, log, policy, principals, rights, terms
from conversations.actions import approvals
from conversations.actions.runs import Body, Claim
from conversations.ids import new_id
from conversations.log.writing import writing
from conversations.models import AlwaysRule, Approval, Conversation, Event, Run, ToolCall
from conversations.nodes import database_time
from conversations.policy import EFFECTS, Declared, Effect
from conversations.principals import SYSTEM

AT_A_TIME = 200  # approvals of one call; the worker's round goes on
MOST = 2_000  # questions that are looked at


def approve_call(claimed: Claim, asked: Body) -> AlwaysRule | None:
    """Record that a rule approves a call of a run: `asked` is its approval.requested. None: a person decides.

    Raises `Fenced` when the run is not the worker's any more.
    """
    with writing():
        conversation = Conversation.objects.locked(key=claimed.conversation)
        call = always.call_of(asked)
        rule = None if conversation.is_held else _use(call, Run.objects.get(id=claimed.run))
        if rule is None:
            return None
        told = _told(asked, rule) | {"id": new_id(), "run_id": claimed.run, "agent": claimed.agent, "by": str(SYSTEM)}
        decided = log.of_ours(claimed.conversation, told, SYSTEM)._replace(attempt=claimed.attempt)
        log.append([claimed.event(asked), decided])
        _enter(rule, claimed.conversation, claimed.run, told)
    return rule


def approve_waiting(at_most: int = AT_A_TIME) -> list[str]:
    """Approve what waits and a rule is about, each in a transaction of its own; answer the ids of those that this call
    did."""
    done: list[str] = []
    rules = always.by_key(always.live())
    for found in _waiting(rules) if rules else ():
        if len(done) >= at_most:
            break
        if _approve(found):
            done.append(found)
    return done


def _waiting(rules: always.Rules) -> Iterator[str]:
    """Answer the questions that a rule may be about, the oldest first."""
    named = ToolCall.objects.filter(Q(lookup_key__in=rules) | Q(lookup_key=None), status="waiting").values("id")
    free = Approval.objects.open().filter(conversation__state="open", conversation__owner="", tool_call__in=named)
    asked = Event.objects.filter(conversation=OuterRef("conversation"), seq=OuterRef("asked_seq")).values("body")
    rows = free.order_by("id").annotate(asked=Subquery(asked[:1])).values_list("id", "asked")
    for found, body in rows[:MOST]:
        call = always.call_of(approvals.read_asked(body))
        if any(always.fits(rule, call, is_destructive=False) for rule in rules.get(call.lookup_key, ())):
            yield found


def _approve(approval: str) -> bool:
    with writing():
        found = Approval.objects.filter(id=approval).first()
        if found is None:
            return False
        conversation = Conversation.objects.locked(found.conversation_id)
        run = Run.objects.get(id=found.run)
        if conversation.is_held or run.status != "waiting" or not Approval.objects.open().filter(id=approval).exists():
            return False
        asked = approvals.asked_of(found)
        rule = _use(always.call_of(asked), run)
        if rule is None:
            return False
        told = _told(asked, rule)
        approvals.close(SYSTEM, found, conversation.key, run, told)
        _enter(rule, conversation.key, run.id, told)
    return True


def _use(call: always.Call, run: Run) -> AlwaysRule | None:
    """Count a use of the first rule that counts for a call, with the conversation locked. None counts for a replay: a
    rule is about what agents do, and a person had the call made again."""
    if run.kind == "replay":
        return None
    about = policy.about(call.agent, call.tool)
    declared: Effect = next((one for one in EFFECTS if one == call.effect), "unsafe")
    held, asked = policy.effective(Declared("ask", declared), about), terms.of_call(about)
    if held.rule == "deny" or asked.no_always:
        return None
    behind = approvals.authors(run) if asked.four_eyes else set()
    live = AlwaysRule.objects.live(database_time())
    for rule in live.filter(lookup_key=call.lookup_key).order_by(*always.IN_TURN):
        is_about = always.fits(rule, call, is_destructive=held.effect == "destructive")
        if is_about and rule.made_by not in behind and makers_right(rule) and _counted(rule):
            return rule
    return None


def makers_right(rule: AlwaysRule) -> bool:
    """Tell whether who made a rule may still decide: else it does not count."""
    return rights.may(principals.of_row(rule.made_by), "decide")


def _counted(rule: AlwaysRule) -> bool:
    return bool(AlwaysRule.objects.live(database_time()).filter(id=rule.id).update(used=F("used") + 1))


def _told(asked: Body, rule: AlwaysRule) -> Body:
    named = {name: asked[name] for name in ("approval_id", "tool_call")}
    return {"event": "approval.decided", **named, "decision": "approve", "rule": rule.id, "rule_by": rule.made_by}


def _enter(rule: AlwaysRule, key: str, run: str, told: Body) -> None:
    facts = {"conversation": key, "run": run, "call": told["tool_call"], "decision": "approve", "rule": rule.id}
    reason = f"a rule of {rule.made_by}"
    audit.enter(SYSTEM, "decide", f"approval:{told['approval_id']}", reason=reason, correlation=facts)
