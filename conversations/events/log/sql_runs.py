"""Write runs, approvals, responses and forks to their tables: only the columns that the fold computes."""

from collections.abc import Mapping
from typing import Any

from django.db.backends.utils import CursorWrapper
from msgspec.structs import astuple

from conversations.events.log.sql_blocks import columns_of, execute_rows
from conversations.events.projections import ApprovalRow, ResponseRow, RowChanges, RunRow, RunStep
from conversations.events.response_ids import DELETED

RUN, APPROVAL, RESPONSE = columns_of(RunRow), f"{columns_of(ApprovalRow)},version", columns_of(ResponseRow)


def _upsert(table: str, columns: str, empty: str = "") -> str:
    """Return the statement that stores a row, also in place of the one with its id if that is of the same conversation.
    `empty`: further columns, in which a new row has an empty text."""
    names = columns.split(",")
    values = ",".join(["%s"] * len(names) + ["''"] * empty.count(","))
    return (
        f"INSERT INTO {table}({columns}{empty}) VALUES ({values}) ON CONFLICT (id) DO UPDATE"
        f" SET {','.join(f'{name}=excluded.{name}' for name in names[2:])}"
        f" WHERE {table}.conversation_id=excluded.conversation_id"
    )


_RUN, _RESPONSE = _upsert("conversations_run", RUN, ",worker,stop"), _upsert("conversations_response", RESPONSE)
_STEPS = """WITH v(id,conversation_id,status,reason,ended_seq,attempt,delivered_to) AS (VALUES %s)
UPDATE conversations_run SET status=v.status,reason=v.reason,ended_seq=CAST(v.ended_seq AS bigint),
attempt=COALESCE(CAST(v.attempt AS integer),conversations_run.attempt),delivered_to=v.delivered_to FROM v
WHERE conversations_run.id=v.id AND conversations_run.conversation_id=v.conversation_id"""
_DECIDE = """UPDATE conversations_approval SET status=%s,decision=%s,decided_by=%s,decided_at=%s,decided_seq=%s,
rule=%s,version=version+1 WHERE id=%s AND conversation_id=%s"""
_ESCALATE = """UPDATE conversations_approval SET escalated_to=%s,escalated_seq=%s,version=version+1
WHERE id=%s AND conversation_id=%s"""
_ANSWERED = """UPDATE conversations_response SET out_seq=%s,status=CASE WHEN status=%s THEN status ELSE %s END
WHERE id=%s AND conversation_id=%s"""
_DELETED = "UPDATE conversations_response SET status=%s WHERE id=%s AND conversation_id=%s"
_FORK = """UPDATE conversations_conversation SET forked_at=%s,copied_seq=%s,
parent_id=(SELECT id FROM conversations_conversation WHERE key=%s) WHERE id=%s"""


def write(cursor: CursorWrapper, changes: RowChanges) -> None:
    """Write new and changed runs, requested and decided approvals. A run's lease, worker and state are not changed."""
    for run in changes.runs.values():
        cursor.execute(_RUN, astuple(run))
    _write_steps(cursor, changes.run_steps)
    approvals = [value for approval in changes.approvals.values() for value in approval_values(approval)]
    execute_rows(
        cursor, f"INSERT INTO conversations_approval({APPROVAL}) VALUES %s", APPROVAL.count(",") + 1, approvals
    )
    for (conversation, approval), (to, seq) in changes.escalations.items():
        cursor.execute(_ESCALATE, [to, seq, approval, conversation])
    for (conversation, approval), end in changes.decisions.items():
        cursor.execute(_DECIDE, [*astuple(end), approval, conversation])


def write_responses(cursor: CursorWrapper, changes: RowChanges) -> None:
    """Write created, ended and deleted responses, and the parent of a forked conversation."""
    for response in changes.responses.values():
        cursor.execute(_RESPONSE, astuple(response))
    for (conversation, id_), (out_seq, status) in changes.answered.items():
        cursor.execute(_ANSWERED, [out_seq, DELETED, status, id_, conversation])
    for conversation, id_ in changes.deleted:
        cursor.execute(_DELETED, [DELETED, id_, conversation])
    for conversation, (parent, forked_at, copied_seq) in changes.forks.items():
        cursor.execute(_FORK, [forked_at, copied_seq, parent, conversation])


def approval_values(row: ApprovalRow) -> tuple[Any, ...]:
    """Return the values of a row's columns; each change of a request counts as a version."""
    return (*astuple(row), 1 + (row.escalated_seq is not None) + (row.decided_seq is not None))


def _write_steps(cursor: CursorWrapper, steps: Mapping[tuple[int, str], RunStep]) -> None:
    """Write the steps of runs: together if each is of another conversation, or else in order, since only one run of a
    conversation may be active at a time."""
    rows = [(run, conversation, *astuple(step)) for (conversation, run), step in steps.items()]
    if len({conversation for conversation, _ in steps}) == len(steps):
        execute_rows(cursor, _STEPS, 7, [value for row in rows for value in row])
        return
    for row in rows:
        execute_rows(cursor, _STEPS, 7, [*row])
