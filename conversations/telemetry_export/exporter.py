"""The export thread: reads the runs that ended, sends their spans, then moves the cursor.

If several processes serve one database, the one that holds the lease works. What a collector does not accept now is
sent again from the same row until it does; what it rejects for good is then sent alone, so that it costs no other run.
"""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from typing import NamedTuple

from django.conf import settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from conversations.core.db_threads import with_connection
from conversations.core.failpoints import failpoint
from conversations.core.node_heartbeat import release
from conversations.core.secret_masking import mask
from conversations.events.background_thread import ExclusiveThread
from conversations.events.log import settled_rows
from conversations.events.log.records import Stored
from conversations.models import Event
from conversations.telemetry_export import cursor, ended_runs, run_spans
from conversations.telemetry_export.collector import Collector, CollectorAnswer
from conversations.telemetry_export.cursor import Cursor
from conversations.telemetry_export.ended_runs import ENDS, EndedRun

POLL_EVERY_S = 1.0  # whatever was announced
PATIENCE = 2.0  # seconds for rows to settle
MAX_RUNS = 100  # of one read
MAX_SPANS, MAX_BYTES = 512, 1 << 20  # of one request; one run's are never parted
FIRST_PAUSE, MAX_PAUSE = 1.0, 60.0  # seconds until a request is sent again, doubled each time
MAX_RETRY_AFTER = 600.0  # seconds that a collector may ask to be left alone
KEEP_EVERY = 20_000  # rows without an end of a run, after which the cursor is written all the same


class RunOfSpans(NamedTuple):
    """A run that ended, and its spans, of `size` bytes."""

    row: int
    spans: list[Span]
    size: int


class Work(NamedTuple):
    """What is to be sent from a row, and where the next read begins."""

    begun: Cursor
    runs: list[RunOfSpans]
    upto: int


class Exporter(ExclusiveThread):
    """The exporter, started by the server if an endpoint is set, ended by `close`."""

    ENDED = "the exporting thread has ended"
    WAITING = "exporting runs is waiting"

    def __init__(self) -> None:
        super().__init__("telemetry-export", lease="telemetry_export_lease")
        config = settings.CONFIG
        self._collector = Collector(config.otlp_endpoint, config.otlp_header_fields, config.otlp_timeout_s)
        self._has_content = config.otlp_content
        self._rows = settled_rows.SettledRows()
        self._row = 0  # up to where there is nothing to send, ahead of the cursor
        self._newest = 0  # row, as it was seen last
        self._pause = 0.0  # seconds, while the collector does not take what it gets

    def wake(self) -> None:
        """Run at once, unless the collector asked for a pause. Callable from any thread."""
        if not self._pause or not self._is_open:
            super().wake()

    def close(self) -> None:
        """End the thread; a request in progress is cut off, and sent again by the next process."""
        self._is_open = False
        self._collector.close()
        super().close()

    def _run_once(self) -> None:
        self._news.clear()
        pause = self._round()
        if self._is_open:
            self._news.wait(pause)

    def _committed(self, stored: Sequence[Stored]) -> None:
        if any(event.kind in ENDS for event in stored):
            self.wake()

    def _round(self) -> float:
        """Send what one read returned; return for how many seconds there is nothing to do."""
        try:
            work = with_connection(self._read)
            if work is None:
                return POLL_EVERY_S
            if not work.runs:
                with_connection(self._pass, work)
                return 0.0 if work.upto < self._newest else POLL_EVERY_S
            return self._send_all(work)
        except Exception as error:  # whatever it is, the thread must live
            self._note_error(error)
        return POLL_EVERY_S

    def _read(self) -> Work | None:
        """Read what is to be sent, until it fills a request; None if another process does it."""
        if not self._may_work:
            return None
        newest = self._rows.look(PATIENCE).settled
        if newest is None:
            return None
        begun = cursor.begin()
        self._newest = newest
        after = max(begun.row, self._row if self._row <= newest else 0)
        upto = max(after, min(newest, after + ended_runs.MAX_ROWS))  # another process may know a newer one
        ends = ended_runs.between(after, upto, MAX_RUNS)
        upto = ends[-1].row if len(ends) == MAX_RUNS else upto
        runs: list[RunOfSpans] = []
        for end in ends:
            if (run := self._spans_of(end)) is not None:
                runs.append(run)
            if sum(each.size for each in runs) > MAX_BYTES:
                return Work(begun, runs, end.row)
        return Work(begun, runs, upto)

    def _spans_of(self, end: EndedRun) -> RunOfSpans | None:
        run = ended_runs.run_of(end)
        if run is None:
            return None
        queued_at = Event.objects.filter(conversation=end.conversation, seq=run.queued_seq).values_list("at", flat=True)
        place = run_spans.RunSurroundings(
            end, run.agent, ended_runs.outermost(run), run.parent_call, queued_at.first() or 0,
            ended_runs.input_of(end, run) if self._has_content else "",
        )  # fmt: skip
        steps = ended_runs.steps_of(end, run, run_spans.STEPS)
        spans = run_spans.of_run(place, steps, has_content=self._has_content)
        return RunOfSpans(end.row, spans, sum(span.ByteSize() for span in spans))

    def _pass(self, work: Work) -> None:
        """Move past rows without ended runs; stored only now and then, since each move is a write."""
        self._row = work.upto
        if work.upto - work.begun.row >= KEEP_EVERY or work.begun.trouble:
            cursor.move(work.begun, work.begun.to(row=work.upto, trouble=""))
        self._settle()

    def _send_all(self, work: Work) -> float:
        """Send in requests of limited size; stop at the first that is not accepted now."""
        here = work.begun
        requests = _cut(work.runs)
        while requests:
            runs = requests.pop(0)
            failpoint("before-export")
            answer = self._send(runs)
            if answer.is_final and len(runs) > 1:
                half = len(runs) // 2
                requests[:0] = [runs[:half], runs[half:]]
                continue
            if not answer.is_taken and not answer.is_final:
                return self._wait(here, answer)
            failpoint("after-export")
            number = sum(len(run.spans) for run in runs)
            refused = number if answer.is_final else min(number, answer.rejected)
            to = here.to(
                row=runs[-1].row if requests else work.upto, runs=here.runs + len(runs) - answer.is_final,
                spans=here.spans + number - refused, refused=here.refused + refused, trouble="",
                refusal=answer.words if refused else here.refusal,
            )  # fmt: skip
            if not with_connection(cursor.move, here, to):
                return POLL_EVERY_S  # another process has moved it
            here = to
        self._row = work.upto
        self._settle()
        return 0.0

    def _send(self, runs: Sequence[RunOfSpans]) -> CollectorAnswer:
        try:
            return self._collector.send(_request([span for run in runs for span in run.spans]))
        except (OSError, http.client.HTTPException) as error:
            return CollectorAnswer(0, words=mask(str(error)) or type(error).__name__)

    def _wait(self, here: Cursor, answer: CollectorAnswer) -> float:
        """Store what is wrong, and return how many seconds to wait."""
        self._pause = min(self._pause * 2 or FIRST_PAUSE, MAX_PAUSE)
        self._note(f"the collector does not take them: {answer.words}"[:300])
        if here.trouble != self._trouble:
            with_connection(cursor.move, here, here.to(trouble=self._trouble))
        return max(self._pause, min(answer.retry_after_s or 0, MAX_RETRY_AFTER))

    def _settle(self) -> None:
        self._pause = 0.0
        self._note("")


def _cut(runs: Sequence[RunOfSpans]) -> list[list[RunOfSpans]]:
    """Split into requests; one run's spans stay together."""
    requests: list[list[RunOfSpans]] = []
    spans = size = 0
    for run in runs:
        if not requests or spans + len(run.spans) > MAX_SPANS or size + run.size > MAX_BYTES:
            requests.append([])
            spans = size = 0
        requests[-1].append(run)
        spans, size = spans + len(run.spans), size + run.size
    return requests


def _request(spans: Sequence[Span]) -> bytes:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    for name, value in (("service.name", "switchboard"), ("service.version", release())):
        resource.resource.attributes.add(key=name).value.string_value = value
    part = resource.scope_spans.add()
    part.scope.name, part.scope.version = "switchboard", release()
    part.spans.extend(spans)
    body: bytes = request.SerializeToString()
    return body
