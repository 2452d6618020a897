"""What the buttons of a conversation do without scripts: decide, answer, run again, stop. They lead back to it."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_POST

from conversations import links
from conversations.actions import answers as actions
from conversations.actions import approvals, runs
from conversations.errors import Invalid
from conversations.models import Conversation, Run, ToolCall
from dashboard.pages.allowed import takes


@require_POST
@takes("decide")
def decisions(request: HttpRequest) -> HttpResponse:
    """Decide what the pressed button names (`approve:ID` or `reject:ID`), with the message beside it."""
    decision, mark, approval = request.POST.get("decide", "").partition(":")
    if not mark:
        raise Invalid("expected a decision", field="decide")
    message = request.POST.get(f"message:{approval}", "")[:2000]
    found = approvals.decide(request.user, approval, decision, message=message)
    return _back(found.conversation_id, found.asked_seq)


@require_POST
@takes("respond")
def answers(request: HttpRequest) -> HttpResponse:
    """Answer by hand the client's call that the pressed button names, with the fields beside it."""
    name = request.POST.get("call", "")
    output = request.POST.get(f"output:{name}", "").replace("\r\n", "\n")
    actions.answer_call(request.user, name, output, reason=request.POST.get(f"reason:{name}", "")[:2000])
    found = ToolCall.objects.get(id=name)
    return _back(found.conversation_id, found.called_seq)


@require_POST
@takes("control")
def again(request: HttpRequest) -> HttpResponse:
    """Run again what the pressed button names."""
    new = Run.objects.get(id=runs.run_again(request.user, request.POST.get("run", "")))
    return _back(new.conversation_id, new.queued_seq)


@require_POST
@takes("control")
def stop(request: HttpRequest) -> HttpResponse:
    """Stop what the pressed button names."""
    name = request.POST.get("run", "")
    runs.stop(request.user, name)
    found = Run.objects.get(id=name)
    return _back(found.conversation_id, found.ended_seq or found.queued_seq)


def _back(conversation: int, seq: int) -> HttpResponse:
    key = Conversation.objects.values_list("key", flat=True).get(id=conversation)
    return HttpResponseRedirect(links.of_event(key, seq))
