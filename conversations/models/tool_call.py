"""One invocation of a tool: a projection of tool steps."""

from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce

from conversations.models.conversation import Conversation

NEWEST_FIRST = ("-started_at", "-conversation", "-called_seq")  # the order of every list: unique, and by the index
PLACE = ["started_at", "conversation", "called_seq"]
RUN = Coalesce("run", Value(""))  # empty for calls of external agents
FAILED, STOPPED = ("failed", "timeout", "unknown"), ("rejected", "blocked")  # statuses
NOT_BEGUN = Q(status__in=("waiting", "approved")) | Q(status="called", replay_of__isnull=False)  # a requested replay
LOWEST, HIGHEST = 4, 24  # classes


def class_of(number: float | None) -> int | None:
    """Return the size class of a duration (ms) or size (bytes), about its number of bits, 4 to 24: a range of numbers
    is a few classes, and each can be walked newest first by its index."""
    return None if number is None else max(LOWEST, min(int(number).bit_length(), HIGHEST))


class ToolCallQuerySet(models.QuerySet["ToolCall"]):
    """Queries of runs."""

    def executing_in(self, run: str) -> list[str]:
        """Return the calls of a run that have begun and not ended; for a waiting run, those around the call it asks
        about."""
        return list(self.filter(run=run, status="executing").values_list("id", flat=True))


class ToolCall(models.Model):
    """A call, ours or observed. Its arguments and output stay in the events at `called_seq` and `finished_seq`."""

    id = models.CharField(max_length=64, primary_key=True)
    conversation = models.ForeignKey(
        Conversation, models.CASCADE, db_index=False, db_constraint=False, related_name="calls"
    )
    run = models.CharField(max_length=64, null=True)
    call_id = models.TextField(null=True, help_text="the provider's text, verbatim")
    nth = models.IntegerField(default=1, help_text="which use of this call_id it is")
    agent = models.CharField(max_length=200, default="")
    name = models.CharField(max_length=200)
    namespace = models.CharField(max_length=200, null=True)
    lookup_key = models.CharField(max_length=400, null=True)
    origin = models.CharField(max_length=40, null=True)
    schema = models.CharField(max_length=64, null=True)
    called_seq = models.BigIntegerField()
    finished_seq = models.BigIntegerField(null=True)
    status = models.CharField(max_length=10)
    arguments_digest = models.CharField(max_length=64, default="")
    started_at = models.BigIntegerField(help_text="µs UTC")
    duration_ms = models.FloatField(null=True)
    replay_of = models.CharField(max_length=64, null=True)
    qualified_name = models.CharField(max_length=401, default="", help_text="as told, else namespace.name")
    mcp_server = models.CharField(max_length=200, null=True)
    output_bytes = models.BigIntegerField(null=True)
    approver = models.CharField(max_length=160, null=True, help_text="the principal who decided about it")
    duration_class = models.SmallIntegerField(null=True, help_text="`class_of(duration_ms)`")
    size_class = models.SmallIntegerField(null=True, help_text="`class_of(output_bytes)`")

    objects = ToolCallQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "call_id", "nth"], name="call_once")]
        # Those on `PLACE` serve the list of calls: a filter walks its own newest first, and never the table. The one of
        # all is on an expression: else PostgreSQL walks it for filters that few of its calls pass. Partial where most
        # calls tell nothing; a qualified name is looked up by `call_by_name` where there is no namespace.
        indexes = [
            models.Index(F("started_at") + 0, "conversation", "called_seq", name="call_newest"),
            models.Index(fields=["name", *PLACE], name="call_by_name"),
            models.Index(fields=["agent", *PLACE], name="call_by_agent"),
            models.Index(fields=["status", *PLACE], name="call_by_status"),
            models.Index(fields=["conversation", "started_at", "called_seq"], name="call_by_conversation"),
            models.Index(
                fields=["qualified_name", *PLACE], name="call_by_qualified", condition=Q(namespace__isnull=False)
            ),
            models.Index(fields=["origin", *PLACE], name="call_by_origin", condition=Q(origin__isnull=False)),
            models.Index(fields=["mcp_server", *PLACE], name="call_by_server", condition=Q(mcp_server__isnull=False)),
            models.Index(fields=["approver", *PLACE], name="call_by_approver", condition=Q(approver__isnull=False)),
            models.Index(fields=PLACE, name="call_replayed", condition=Q(replay_of__isnull=False)),
            models.Index(
                fields=["duration_class", *PLACE], name="call_by_duration", condition=Q(duration_class__isnull=False)
            ),
            models.Index(fields=["size_class", *PLACE], name="call_by_size", condition=Q(size_class__isnull=False)),
            models.Index(fields=["schema", "id"], name="call_by_schema", condition=Q(schema__isnull=False)),
            models.Index(fields=["conversation", "called_seq"], name="call_by_seq"),
            models.Index(
                fields=["conversation", "finished_seq"], name="call_by_end", condition=Q(finished_seq__isnull=False)
            ),
            # For the fold: the oldest open call of a kind, and the last use of a call id, are one entry each.
            # Calls of external agents have no run, and an index is not asked for what is null: hence the expression.
            models.Index(
                "conversation",
                "call_id",
                RUN,
                "called_seq",
                name="call_open_by_id",
                condition=Q(finished_seq__isnull=True, call_id__isnull=False),
            ),
            models.Index(
                "conversation",
                "name",
                RUN,
                "called_seq",
                name="call_open_by_name",
                condition=Q(finished_seq__isnull=True, call_id__isnull=True),
            ),
            models.Index(  # of a conversation, for the fold; of all, for the list
                "call_id", "conversation", RUN, "nth", name="call_by_call_id", condition=Q(call_id__isnull=False)
            ),
        ]
