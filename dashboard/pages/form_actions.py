"""The buttons of a conversation without scripts: answer a call, run again, stop. Each redirects back to the
conversation."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_POST

from conversations.core import page_urls
from conversations.models import Conversation, Run, ToolCall
from conversations.runs import stop_and_rerun
from conversations.runs.responses import manual_output
from dashboard.require_permission import require_permission


@require_POST
@require_permission("respond")
def answers(request: HttpRequest) -> HttpResponse:
    """Supply the output of a client's call: the pressed button names the call, the fields beside it hold the output."""
    name = request.POST.get("call", "")
    output = request.POST.get(f"output:{name}", "").replace("\r\n", "\n")
    manual_output.answer_call(request.user, name, output, reason=request.POST.get(f"reason:{name}", "")[:2000])
    call = ToolCall.objects.get(id=name)
    return _back(call.conversation_id, call.called_seq)


@require_POST
@require_permission("control")
def again(request: HttpRequest) -> HttpResponse:
    """Run again the run that the pressed button names."""
    new = Run.objects.get(id=stop_and_rerun.run_again(request.user, request.POST.get("run", "")))
    return _back(new.conversation_id, new.queued_seq)


@require_POST
@require_permission("control")
def stop(request: HttpRequest) -> HttpResponse:
    """Stop the run that the pressed button names."""
    name = request.POST.get("run", "")
    stop_and_rerun.cancel_run(request.user, name)
    run = Run.objects.get(id=name)
    return _back(run.conversation_id, run.ended_seq or run.queued_seq)


def _back(conversation: int, seq: int) -> HttpResponse:
    key = Conversation.objects.values_list("key", flat=True).get(id=conversation)
    return HttpResponseRedirect(page_urls.event_url(key, seq))
