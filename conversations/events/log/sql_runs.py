"""Write runs and approvals to their tables: only the columns that the fold computes."""

from collections.abc import Mapping
from typing import Any

from django.db.backends.utils import CursorWrapper

from conversations.events.log.sql_blocks import execute_rows
from conversations.events.projections import RowChanges, RunStep

_RUN = """INSERT INTO conversations_run(id,conversation_id,kind,agent,status,reason,parent_call,input_seq,queued_seq,
ended_seq,attempt,at_next_step,delivered_to,worker,stop)
VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,'','') ON CONFLICT (id) DO UPDATE SET
kind=excluded.kind,agent=excluded.agent,status=excluded.status,reason=excluded.reason,parent_call=excluded.parent_call,
input_seq=excluded.input_seq,queued_seq=excluded.queued_seq,ended_seq=excluded.ended_seq,attempt=excluded.attempt,
at_next_step=excluded.at_next_step,delivered_to=excluded.delivered_to
WHERE conversations_run.conversation_id=excluded.conversation_id"""
_STEPS = """WITH v(id,conversation_id,status,reason,ended_seq,attempt,delivered_to) AS (VALUES %s)
UPDATE conversations_run SET status=v.status,reason=v.reason,ended_seq=CAST(v.ended_seq AS bigint),
attempt=COALESCE(CAST(v.attempt AS integer),conversations_run.attempt),delivered_to=v.delivered_to FROM v
WHERE conversations_run.id=v.id AND conversations_run.conversation_id=v.conversation_id"""
_APPROVAL = """INSERT INTO conversations_approval(id,conversation_id,tool_call,run,asked_seq,asked_at,status,decision,
decided_by,decided_at,decided_seq,version,deadline,rule,escalated_to,escalated_seq)
VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)"""
_DECIDE = """UPDATE conversations_approval SET status=%s,decision=%s,decided_by=%s,decided_at=%s,decided_seq=%s,
rule=%s,version=version+1 WHERE id=%s AND conversation_id=%s"""
_ESCALATE = """UPDATE conversations_approval SET escalated_to=%s,escalated_seq=%s,version=version+1
WHERE id=%s AND conversation_id=%s"""


def write(cursor: CursorWrapper, changes: RowChanges) -> None:
    """Write new and changed runs, and requested and decided approvals. A run's lease, worker and state are not
    changed."""
    for r in changes.runs.values():
        row: list[Any] = [r.id, r.conversation_id, r.kind, r.agent, r.status, r.reason, r.parent_call, r.input_seq]
        cursor.execute(_RUN, [*row, r.queued_seq, r.ended_seq, r.attempt, r.at_next_step, r.delivered_to])
    _write_steps(cursor, changes.run_steps)
    for a in changes.approvals.values():
        row = [a.id, a.conversation_id, a.tool_call, a.run, a.asked_seq, a.asked_at, a.status, a.decision]
        version = 1 + (a.escalated_seq is not None) + (a.decided_seq is not None)
        row += [a.decided_by, a.decided_at, a.decided_seq, version]
        cursor.execute(_APPROVAL, [*row, a.deadline, a.rule, a.escalated_to, a.escalated_seq])
    for (conversation, approval), (to, seq) in changes.escalations.items():
        cursor.execute(_ESCALATE, [to, seq, approval, conversation])
    for (conversation, approval), d in changes.decisions.items():
        row = [d.status, d.decision, d.decided_by, d.decided_at, d.decided_seq, d.rule, approval, conversation]
        cursor.execute(_DECIDE, row)


def _write_steps(cursor: CursorWrapper, steps: Mapping[tuple[int, str], RunStep]) -> None:
    """Write the steps of runs: together if each is of another conversation, or else in order, since only one run of a
    conversation may be active at a time."""
    rows = [(r, c, s.status, s.reason, s.ended_seq, s.attempt, s.delivered_to) for (c, r), s in steps.items()]
    if len({conversation for conversation, _ in steps}) == len(steps):
        execute_rows(cursor, _STEPS, 7, [value for row in rows for value in row])
        return
    for row in rows:
        execute_rows(cursor, _STEPS, 7, [*row])
