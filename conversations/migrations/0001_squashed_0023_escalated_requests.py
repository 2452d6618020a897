"""All tables as migrations 0001 to 0023 leave them, in one step. An empty database begins here; one that has some of
those migrations goes on with the others, whose files stay as long as such databases are upgraded."""

from typing import Any

import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.comparison
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.operations.base import Operation

import conversations.models.people

# Tables that no model describes: what the search index consists of.
SEARCH_TIME = (
    "CREATE TABLE conversations_searchtime(span BIGINT PRIMARY KEY,earliest BIGINT NOT NULL,latest BIGINT NOT NULL)"
)
SEARCH = {
    "sqlite": (
        "CREATE VIRTUAL TABLE conversations_search USING fts5(words,characters,marks,content='',columnsize=0,"
        "tokenize='ascii')",
        "CREATE TABLE conversations_searchword(word TEXT NOT NULL,block INTEGER NOT NULL,PRIMARY KEY(word,block))"
        " WITHOUT ROWID",
        SEARCH_TIME,
        "CREATE VIRTUAL TABLE conversations_caption USING fts5(grams,content='',columnsize=0,detail=none,"
        "tokenize='ascii')",
        "CREATE TABLE conversations_captiontext(id INTEGER PRIMARY KEY,said TEXT NOT NULL)",
    ),
    "postgresql": (
        "CREATE TABLE conversations_search(id BIGINT PRIMARY KEY,words TSVECTOR NOT NULL)",
        # Without a list of what is pending, which each search would have to walk through.
        "CREATE INDEX conversations_search_words ON conversations_search USING gin(words) WITH (fastupdate=off)",
        'CREATE TABLE conversations_searchword(word TEXT COLLATE "C" NOT NULL,block BIGINT NOT NULL,'
        "PRIMARY KEY(word,block))",
        SEARCH_TIME,
        "CREATE TABLE conversations_captiontext(id BIGINT PRIMARY KEY,said TEXT NOT NULL,grams TSVECTOR NOT NULL)",
        "CREATE INDEX conversations_captiontext_grams ON conversations_captiontext USING gin(grams)"
        " WITH (fastupdate=off)",
    ),
}


class CreateModels(Operation):
    """Create many tables as one operation. Operations of their own would each render every related model again."""

    reversible = False

    def __init__(self, models: list[migrations.CreateModel]) -> None:
        """Take the operations that describe the models, in any order."""
        self.models = models

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Add the models to the state, which is rendered once, when it is next used."""
        if "apps" in state.__dict__:
            del state.apps
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Create the tables, their indexes and their references; with nothing deferred, Django records the migration in
        the same transaction."""
        for model in self.models:
            model.database_forwards(app_label, schema_editor, from_state, to_state)
        for statement in schema_editor.deferred_sql:
            schema_editor.execute(statement, None)
        schema_editor.deferred_sql.clear()

    def describe(self) -> str:
        """Say what `migrate --plan` shows."""
        return f"Create {len(self.models)} models"


def create_search(apps: Any, schema_editor: Any) -> None:
    """Create the tables of the search index as this database has them."""
    for statement in SEARCH[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


MODELS = [
    migrations.CreateModel(
        name="User",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("password", models.CharField(max_length=128, verbose_name="password")),
            ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
            ("username", models.CharField(max_length=150, unique=True)),
            ("is_active", models.BooleanField(default=True)),
            ("session_salt", models.CharField(default=conversations.models.people._new_salt, max_length=16)),
            ("created_at", models.DateTimeField(auto_now_add=True)),
        ],
        options={
            "abstract": False,
        },
    ),
    migrations.CreateModel(
        name="AuditEntry",
        fields=[
            ("seq", models.BigIntegerField(primary_key=True, serialize=False)),
            ("at", models.BigIntegerField(help_text="µs UTC")),
            ("principal", models.CharField(max_length=160)),
            ("acting_as", models.CharField(default="", max_length=200)),
            ("verb", models.CharField(max_length=60)),
            ("target", models.CharField(max_length=300)),
            ("before", models.CharField(default="", help_text="SHA-256 of the state before, or empty", max_length=64)),
            ("after", models.CharField(default="", help_text="SHA-256 of the state after, or empty", max_length=64)),
            ("reason", models.TextField(default="")),
            ("outcome", models.CharField(help_text="done or refused", max_length=10)),
            ("correlation", models.TextField(default="", help_text="JSON: request, address, conversation, run, call")),
            ("prev_hash", models.CharField(max_length=64)),
            ("hash", models.CharField(max_length=64)),
            ("salt", models.BinaryField(help_text="16 random bytes; none once the entry is erased", null=True)),
            (
                "digest",
                models.CharField(
                    default="",
                    help_text="SHA-256 over salt and personal columns; empty in entries of format 1",
                    max_length=64,
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(
                    models.F("principal"),
                    django.db.models.expressions.CombinedExpression(models.F("seq"), "+", models.Value(0)),
                    name="audit_by_principal",
                ),
                models.Index(
                    models.F("target"),
                    django.db.models.expressions.CombinedExpression(models.F("seq"), "+", models.Value(0)),
                    name="audit_by_target",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="AuditHead",
        fields=[
            ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
            ("seq", models.BigIntegerField(default=0)),
            ("hash", models.CharField(default="", max_length=64)),
        ],
    ),
    migrations.CreateModel(
        name="Meta",
        fields=[
            ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
            ("value", models.TextField()),
        ],
    ),
    migrations.CreateModel(
        name="Node",
        fields=[
            ("name", models.CharField(help_text="host:pid:start", max_length=100, primary_key=True, serialize=False)),
            (
                "kind",
                models.CharField(
                    choices=[("web", "web"), ("recorder", "recorder"), ("worker", "worker")], max_length=10
                ),
            ),
            ("version", models.CharField(max_length=40)),
            ("started_at", models.BigIntegerField(help_text="µs UTC")),
            ("seen_at", models.BigIntegerField(help_text="µs UTC, by the database's clock")),
            ("facts", models.TextField(default="{}", help_text="a JSON object: lag, queue depth, sockets, warnings …")),
        ],
    ),
    migrations.CreateModel(
        name="RedisPosition",
        fields=[
            ("stream", models.CharField(max_length=250, primary_key=True, serialize=False)),
            ("last_id", models.CharField(help_text="Redis entry id, milliseconds-sequence", max_length=41)),
            (
                "entries_read",
                models.BigIntegerField(default=0, help_text="the stream's entries-added when last_id was its newest"),
            ),
            (
                "found_at",
                models.BigIntegerField(help_text="µs UTC, first contact: older entries are history and start nothing"),
            ),
        ],
    ),
    migrations.CreateModel(
        name="SavedView",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("name", models.CharField(max_length=80, unique=True)),
            (
                "query",
                models.CharField(help_text="as it stands in the address, without the question mark", max_length=4000),
            ),
            ("made_by", models.CharField(help_text="a principal", max_length=160)),
            ("made_at", models.DateTimeField(auto_now_add=True)),
        ],
        options={
            "ordering": ["name"],
        },
    ),
    migrations.CreateModel(
        name="Token",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("name", models.CharField(max_length=150, unique=True)),
            ("role", models.CharField(max_length=10)),
            ("agent", models.CharField(default="", max_length=200)),
            ("digest", models.CharField(max_length=64, unique=True)),
            ("created_by", models.CharField(max_length=160)),
            ("created_at", models.DateTimeField(auto_now_add=True)),
            ("last_used_at", models.DateTimeField(null=True)),
            ("revoked_at", models.DateTimeField(null=True)),
        ],
    ),
    migrations.CreateModel(
        name="ToolSchema",
        fields=[
            ("hash", models.CharField(max_length=64, primary_key=True, serialize=False)),
            ("name", models.CharField(max_length=200)),
            (
                "body",
                models.TextField(
                    help_text="JSON: {name, description, params_json_schema, output_json_schema?, strict}"
                ),
            ),
        ],
    ),
    migrations.CreateModel(
        name="Agent",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("team", models.CharField(max_length=100)),
            ("name", models.CharField(max_length=200)),
            ("description", models.TextField(default="")),
            ("model", models.CharField(default="", max_length=200)),
            ("is_demo_model", models.BooleanField(default=False)),
            ("is_entry", models.BooleanField(default=False, help_text="answers messages addressed to its name")),
            (
                "tools",
                models.TextField(
                    default="[]",
                    help_text="JSON: [{name, schema, effect, needs_approval, origin, and what else is told of it}]",
                ),
            ),
            ("handoffs", models.TextField(default="[]", help_text="JSON: [agent name]; cycles are allowed")),
            (
                "transfers",
                models.TextField(
                    default="[]",
                    help_text="JSON: [{name, schema, to, enabled}], handoffs as a model sees them: as tools",
                ),
            ),
            (
                "output",
                models.TextField(
                    default="{}", help_text="JSON: {type, is_wrapped, is_strict, schema}; schema null: text"
                ),
            ),
            (
                "problems",
                models.TextField(default="[]", help_text="JSON: [sentence], of names of MCP servers that collide"),
            ),
            (
                "max_turns",
                models.IntegerField(default=0, help_text="model turns that a run of its team may take; 0: not told"),
            ),
            (
                "hue",
                models.IntegerField(
                    default=0, help_text="1 to 10 of the palette, its colour everywhere; 0: by its name"
                ),
            ),
            ("served_until", models.BigIntegerField(default=0, help_text="µs UTC, by the database's clock")),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(fields=("team", "name"), name="agent_once"),
                models.UniqueConstraint(
                    condition=models.Q(("is_entry", True)), fields=("name",), name="agent_entry_once"
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="AutoApprovalRule",
        fields=[
            ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
            ("lookup_key", models.CharField(help_text="the tool's kind and names: `bare:x`", max_length=410)),
            ("tool", models.CharField(help_text="its qualified name, as it is shown", max_length=401)),
            (
                "schema",
                models.CharField(default="", help_text="the tool's hash; empty: whatever it is then", max_length=64),
            ),
            ("agent", models.CharField(default="", help_text="an agent's name; empty: every agent", max_length=200)),
            ("is_exact", models.BooleanField(help_text="the arguments are these; else these are among them")),
            ("arguments", models.TextField(help_text="canonical JSON of an object")),
            ("digest", models.CharField(help_text="its SHA-256", max_length=64)),
            ("uses", models.IntegerField(help_text="how often it may approve; null: without a limit", null=True)),
            ("used", models.IntegerField(default=0)),
            ("until", models.BigIntegerField(help_text="µs UTC; null: for ever", null=True)),
            ("made_by", models.CharField(max_length=160)),
            ("made_at", models.BigIntegerField(help_text="µs UTC")),
            ("approval", models.CharField(default="", help_text="the question that it was made from", max_length=64)),
            ("reason", models.CharField(default="", max_length=2000)),
            ("revoked_by", models.CharField(default="", max_length=160)),
            ("revoked_at", models.BigIntegerField(help_text="µs UTC", null=True)),
        ],
        options={
            "db_table": "conversations_alwaysrule",
            "indexes": [
                models.Index(condition=models.Q(("revoked_at", None)), fields=["lookup_key"], name="always_live")
            ],
        },
    ),
    migrations.CreateModel(
        name="Conversation",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("key", models.CharField(max_length=200, unique=True)),
            ("title", models.CharField(default="", max_length=200)),
            ("state", models.CharField(default="open", help_text="open or paused, whoever holds it", max_length=10)),
            (
                "owner",
                models.CharField(default="", help_text="the principal who took it over; empty: agents", max_length=160),
            ),
            (
                "paused_seq",
                models.BigIntegerField(default=0, help_text="the event that paused it; 0: it is not paused"),
            ),
            (
                "owned_seq",
                models.BigIntegerField(default=0, help_text="the event by which a person took it over; 0: nobody"),
            ),
            ("handler", models.CharField(default="", max_length=200)),
            ("is_demo", models.BooleanField(default=False)),
            ("is_staged", models.BooleanField(default=False)),
            ("head_seq", models.BigIntegerField(default=0)),
            ("head_hash", models.CharField(default="", max_length=64)),
            ("indexed_seq", models.BigIntegerField(default=0)),
            ("last_at", models.BigIntegerField(default=0, help_text="µs UTC, commit time of the last event")),
            ("last_sender", models.CharField(default="", max_length=200)),
            (
                "last_by",
                models.CharField(default="", help_text="the person who said it under another's name", max_length=160),
            ),
            ("last_line", models.CharField(default="", max_length=200)),
            ("messages", models.BigIntegerField(default=0)),
            ("tool_calls", models.BigIntegerField(default=0)),
            ("errors", models.BigIntegerField(default=0)),
            (
                "repeatable",
                models.CharField(
                    default="",
                    help_text="SHA-256 of the output that is the last event: what an envelope may repeat",
                    max_length=64,
                ),
            ),
            (
                "preview_after",
                models.BigIntegerField(
                    default=0, help_text="seq of the last output without a run: foreign tokens after it are a preview"
                ),
            ),
            ("forked_at", models.BigIntegerField(null=True)),
            (
                "copied_seq",
                models.BigIntegerField(
                    default=0,
                    help_text="a fork's events up to here are its parent's, copied: history, no deeds of its own",
                ),
            ),
            (
                "parent",
                models.ForeignKey(
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name="forks",
                    to="conversations.conversation",
                ),
            ),
            ("opened_by", models.CharField(default="", help_text="the principal of its first event", max_length=160)),
            (
                "outside_seq",
                models.BigIntegerField(
                    default=0,
                    help_text="the first event of somebody who was not let in: only people let agents in since;"
                    " 0: none",
                ),
            ),
            (
                "activity",
                models.CharField(
                    db_default="",
                    default="",
                    help_text="events of the hour before its last one (`core.recent_activity`)",
                    max_length=240,
                ),
            ),
            ("key_salt", models.BinaryField(help_text="16 random bytes; none once the id is erased", null=True)),
            (
                "key_digest",
                models.CharField(
                    db_default="",
                    default="",
                    help_text="SHA-256 over salt and id; empty for those of before format 3",
                    max_length=64,
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(
                    models.OrderBy(models.F("last_at"), descending=True),
                    models.OrderBy(models.F("id"), descending=True),
                    condition=models.Q(("is_staged", False)),
                    name="conversation_newest",
                ),
                models.Index(
                    models.OrderBy(models.F("last_at"), descending=True),
                    models.OrderBy(models.F("id"), descending=True),
                    condition=models.Q(("state", "paused")),
                    name="conversation_paused",
                ),
                models.Index(
                    models.F("owner"),
                    models.OrderBy(models.F("last_at"), descending=True),
                    condition=models.Q(("owner", ""), _negated=True),
                    name="conversation_owned",
                ),
                models.Index(condition=models.Q(("is_staged", True)), fields=["id"], name="conversation_staged"),
                models.Index(
                    condition=models.Q(("indexed_seq__lt", models.F("head_seq")), ("is_staged", False)),
                    fields=["id"],
                    name="conversation_unindexed",
                ),
                models.Index(
                    models.OrderBy(models.F("last_at"), descending=True),
                    models.OrderBy(models.F("id"), descending=True),
                    condition=models.Q(("owner", ""), _negated=True),
                    name="conversation_person",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="Approval",
        fields=[
            ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
            ("tool_call", models.CharField(max_length=64, unique=True)),
            ("run", models.CharField(max_length=64)),
            ("asked_seq", models.BigIntegerField()),
            ("asked_at", models.BigIntegerField(help_text="µs UTC")),
            ("deadline", models.BigIntegerField(help_text="µs UTC", null=True)),
            (
                "status",
                models.CharField(default="pending", help_text="pending, decided, expired or cancelled", max_length=10),
            ),
            ("decision", models.CharField(help_text="approve, reject, respond or edit", max_length=10, null=True)),
            ("decided_by", models.CharField(max_length=160, null=True)),
            ("decided_at", models.BigIntegerField(help_text="µs UTC", null=True)),
            ("decided_seq", models.BigIntegerField(null=True)),
            ("rule", models.CharField(help_text="the auto-approval rule that approved it", max_length=64, null=True)),
            (
                "escalated_to",
                models.CharField(default="", help_text="the role that was told; empty: none", max_length=20),
            ),
            ("escalated_seq", models.BigIntegerField(null=True)),
            ("version", models.IntegerField(default=1)),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    to="conversations.conversation",
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(condition=models.Q(("status", "pending")), fields=["id"], name="approval_pending"),
                models.Index(fields=["conversation", "asked_seq"], name="approval_by_conversation"),
                models.Index(fields=["run"], name="approval_by_run"),
                models.Index(
                    condition=models.Q(("rule__isnull", False)), fields=["rule", "id"], name="approval_by_rule"
                ),
                models.Index(fields=["asked_at"], name="approval_by_time"),
                models.Index(
                    condition=models.Q(("decided_at__isnull", False)), fields=["decided_at"], name="approval_decided"
                ),
                models.Index(
                    condition=models.Q(("escalated_seq__isnull", False), ("status", "pending")),
                    fields=["escalated_seq"],
                    name="approval_escalated",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="Event",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("seq", models.BigIntegerField()),
            ("kind", models.CharField(max_length=64)),
            ("at", models.BigIntegerField(help_text="µs UTC, commit time")),
            ("principal", models.CharField(max_length=160)),
            ("run", models.CharField(max_length=64, null=True)),
            ("turn", models.IntegerField(null=True)),
            ("event_id", models.CharField(max_length=200, null=True)),
            ("body", models.TextField()),
            ("salt", models.BinaryField(max_length=16, null=True)),
            ("digest", models.CharField(max_length=64)),
            ("hash", models.CharField(max_length=64)),
            ("erased_by", models.CharField(max_length=64, null=True)),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    on_delete=django.db.models.deletion.PROTECT,
                    related_name="events",
                    to="conversations.conversation",
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(
                    condition=models.Q(("kind", "token"), _negated=True),
                    fields=["conversation", "seq"],
                    name="event_drawn",
                )
            ],
            "constraints": [
                models.UniqueConstraint(fields=("conversation", "seq"), name="event_seq"),
                models.UniqueConstraint(
                    condition=models.Q(("event_id__isnull", False)),
                    fields=("conversation", "event_id"),
                    name="event_once",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="Grant",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("what", models.CharField(help_text="speak_as or replay", max_length=10)),
            (
                "target",
                models.CharField(
                    help_text="speak_as: agent:NAME or system; replay: a tool's qualified name; *: all of them",
                    max_length=401,
                ),
            ),
            ("granted_by", models.CharField(max_length=160)),
            ("granted_at", models.DateTimeField()),
            ("until", models.DateTimeField(null=True)),
            (
                "user",
                models.ForeignKey(
                    db_index=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="grants",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("user", "what", "target"), name="grant_once")],
        },
    ),
    migrations.CreateModel(
        name="Participant",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "conversation_id", "name", blank=True, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("name", models.CharField(max_length=200)),
            ("kind", models.CharField(help_text="agent, person or system", max_length=10)),
            (
                "is_named",
                models.BooleanField(
                    default=False,
                    help_text="somebody who may let it in spoke to it: then its own token may view the conversation",
                ),
            ),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="participants",
                    to="conversations.conversation",
                ),
            ),
            (
                "is_reachable",
                models.BooleanField(
                    db_default=False,
                    default=False,
                    help_text="it spoke from outside of our runs, or was spoken to: what is sent to it may be read",
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(fields=["name", "conversation"], name="participant_by_name"),
                models.Index(
                    condition=models.Q(("is_named", True)), fields=["name", "conversation"], name="participant_named"
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="Policy",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("agent", models.CharField(default="", help_text="an agent's name; empty: every agent", max_length=200)),
            (
                "tool",
                models.CharField(default="", help_text="a tool's qualified name; empty: every tool", max_length=401),
            ),
            ("rule", models.CharField(help_text="allow, ask or deny", max_length=5)),
            (
                "effect",
                models.CharField(
                    default="",
                    help_text="read, idempotent, unsafe or destructive; empty: what the code says",
                    max_length=12,
                ),
            ),
            ("note", models.CharField(default="", max_length=500)),
            (
                "deadline_s",
                models.IntegerField(help_text="seconds a question may wait; null: as the settings say", null=True),
            ),
            (
                "on_expiry",
                models.CharField(
                    default="", help_text="wait, reject or notify; empty: as the settings say", max_length=6
                ),
            ),
            (
                "notify",
                models.CharField(
                    default="", help_text="the role that is told; empty: as the settings say", max_length=10
                ),
            ),
            (
                "four_eyes",
                models.BooleanField(default=False, help_text="nobody decides on a run whose input they wrote or sent"),
            ),
            (
                "no_always",
                models.BooleanField(
                    default=False, help_text="no auto-approval rule approves: a person decides each call"
                ),
            ),
            ("updated_by", models.CharField(max_length=160)),
            ("updated_at", models.DateTimeField()),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("agent", "tool"), name="policy_once")],
        },
    ),
    migrations.CreateModel(
        name="Post",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("topic", models.CharField(max_length=250)),
            ("bus_id", models.CharField(max_length=200)),
            ("event_seq", models.BigIntegerField(null=True)),
            ("body", models.TextField(null=True)),
            ("sent_at", models.BigIntegerField(help_text="µs UTC, when the relay put it on Redis", null=True)),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    to="conversations.conversation",
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(fields=["topic", "id"], name="post_by_topic"),
                models.Index(condition=models.Q(("sent_at__isnull", True)), fields=["id"], name="post_unsent"),
                models.Index(condition=models.Q(("conversation__isnull", True)), fields=["id"], name="post_nameless"),
            ],
            "constraints": [models.UniqueConstraint(fields=("topic", "bus_id"), name="post_once")],
        },
    ),
    migrations.CreateModel(
        name="Quarantine",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("source", models.CharField(help_text="the Redis stream it was on", max_length=250)),
            ("entry", models.CharField(help_text="its Redis entry id", max_length=41)),
            ("at", models.BigIntegerField(help_text="µs UTC")),
            ("reason", models.TextField()),
            ("raw", models.BinaryField()),
            ("size", models.BigIntegerField(help_text="bytes, of the whole")),
            ("digest", models.CharField(help_text="SHA-256 of the whole", max_length=64)),
            (
                "conversation",
                models.CharField(help_text="whose history tells of it, where one is known", max_length=200, null=True),
            ),
            (
                "outcome",
                models.CharField(
                    choices=[("redriven", "redriven"), ("discarded", "discarded")], max_length=10, null=True
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(condition=models.Q(("outcome__isnull", True)), fields=["id"], name="quarantine_open")
            ],
            "constraints": [models.UniqueConstraint(fields=("source", "entry"), name="quarantine_once")],
        },
    ),
    migrations.CreateModel(
        name="ReadMarker",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "user_id", "conversation_id", blank=True, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("last_seq", models.BigIntegerField(default=0)),
            ("messages_seen", models.BigIntegerField(default=0)),
            ("seen_at", models.DateTimeField(auto_now=True)),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False, on_delete=django.db.models.deletion.CASCADE, to="conversations.conversation"
                ),
            ),
            (
                "user",
                models.ForeignKey(
                    db_index=False, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                ),
            ),
        ],
    ),
    migrations.CreateModel(
        name="Response",
        fields=[
            ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
            ("previous", models.CharField(help_text="the response it goes on from", max_length=64, null=True)),
            ("run", models.CharField(max_length=64)),
            ("in_seq", models.BigIntegerField()),
            ("out_seq", models.BigIntegerField(null=True)),
            (
                "status",
                models.CharField(default="", help_text="of response.completed; empty until then", max_length=12),
            ),
            (
                "store",
                models.BooleanField(
                    default=True, help_text="False: continuable on its own websocket only, while it is open"
                ),
            ),
            (
                "socket",
                models.CharField(default="", help_text="of the websocket that asked; empty for HTTP", max_length=64),
            ),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="responses",
                    to="conversations.conversation",
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(
                    condition=models.Q(("previous__isnull", False)), fields=["previous"], name="response_by_previous"
                ),
                models.Index(fields=["conversation", "in_seq"], name="response_by_conversation"),
            ],
        },
    ),
    migrations.CreateModel(
        name="Role",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            (
                "name",
                models.CharField(
                    choices=[
                        ("viewer", "viewer"),
                        ("operator", "operator"),
                        ("approver", "approver"),
                        ("auditor", "auditor"),
                        ("admin", "admin"),
                    ],
                    max_length=10,
                ),
            ),
            (
                "user",
                models.ForeignKey(
                    db_index=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="roles",
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("user", "name"), name="role_once")],
        },
    ),
    migrations.CreateModel(
        name="Run",
        fields=[
            ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
            (
                "kind",
                models.CharField(default="agent", help_text="agent, replay, recording, external", max_length=10),
            ),
            ("agent", models.CharField(max_length=200)),
            ("status", models.CharField(max_length=12)),
            ("reason", models.CharField(default="", help_text="why it waits, failed or was cancelled", max_length=200)),
            (
                "parent_call",
                models.CharField(help_text="the call that a nested run belongs to", max_length=64, null=True),
            ),
            ("input_seq", models.BigIntegerField(help_text="the event it answers")),
            ("queued_seq", models.BigIntegerField()),
            ("ended_seq", models.BigIntegerField(null=True)),
            ("attempt", models.IntegerField(default=0)),
            ("lease_until", models.BigIntegerField(help_text="µs UTC, by the database's clock", null=True)),
            ("worker", models.CharField(default="", max_length=100)),
            (
                "stop",
                models.CharField(
                    default="",
                    help_text="what a person asked of the worker: pause, stop, cancel or abort",
                    max_length=10,
                ),
            ),
            ("state", models.TextField(help_text="the SDK's RunState while it waits, opaque", null=True)),
            ("state_mac", models.CharField(help_text="HMAC over id, sdk and state", max_length=64, null=True)),
            (
                "sdk",
                models.CharField(help_text="SDK version, schema version, hash of the tools", max_length=100, null=True),
            ),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    to="conversations.conversation",
                ),
            ),
            (
                "at_next_step",
                models.BooleanField(
                    db_default=False,
                    default=False,
                    help_text="what it answers may be delivered to the run at work instead, at that run's next step",
                ),
            ),
            (
                "delivered_to",
                models.CharField(
                    db_default="",
                    default="",
                    help_text="the run at work that took in what it was to answer",
                    max_length=64,
                ),
            ),
            (
                "team",
                models.CharField(
                    db_default="",
                    default="",
                    help_text="whose worker continues it; empty: it has not begun, and any team with the agent may",
                    max_length=100,
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(condition=models.Q(("status", "queued")), fields=["id"], name="run_queued"),
                models.Index(condition=models.Q(("status", "running")), fields=["lease_until"], name="run_leased"),
                models.Index(fields=["conversation", "queued_seq"], name="run_by_conversation"),
                models.Index(fields=["agent", "id"], name="run_by_agent"),
                models.Index(
                    condition=models.Q(
                        ("parent_call__isnull", True), ("status__in", ("failed", "interrupted", "incompatible"))
                    ),
                    fields=["id"],
                    name="run_failed",
                ),
            ],
            "constraints": [
                models.UniqueConstraint(
                    condition=models.Q(
                        ("kind", "agent"), ("parent_call__isnull", True), ("status__in", ("running", "waiting"))
                    ),
                    fields=("conversation",),
                    name="run_alone",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="SessionItem",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("conversation", models.CharField(max_length=200)),
            ("seq", models.BigIntegerField()),
            ("at", models.BigIntegerField(help_text="µs UTC")),
            ("payload", models.TextField(help_text="JSON, as the SDK gave it")),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("conversation", "seq"), name="session_item_seq")],
        },
    ),
    migrations.CreateModel(
        name="SignInLink",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("digest", models.CharField(max_length=64, unique=True)),
            ("expires_at", models.DateTimeField()),
            ("used_at", models.DateTimeField(null=True)),
            (
                "user",
                models.ForeignKey(
                    on_delete=django.db.models.deletion.CASCADE, related_name="links", to=settings.AUTH_USER_MODEL
                ),
            ),
        ],
    ),
    migrations.CreateModel(
        name="ToolCall",
        fields=[
            ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
            ("run", models.CharField(max_length=64, null=True)),
            ("call_id", models.TextField(help_text="the provider's text, verbatim", null=True)),
            ("nth", models.IntegerField(default=1, help_text="which use of this call_id it is")),
            ("agent", models.CharField(default="", max_length=200)),
            ("name", models.CharField(max_length=200)),
            ("namespace", models.CharField(max_length=200, null=True)),
            ("lookup_key", models.CharField(max_length=400, null=True)),
            ("origin", models.CharField(max_length=40, null=True)),
            ("schema", models.CharField(max_length=64, null=True)),
            ("called_seq", models.BigIntegerField()),
            ("finished_seq", models.BigIntegerField(null=True)),
            ("status", models.CharField(max_length=10)),
            ("arguments_digest", models.CharField(default="", max_length=64)),
            ("started_at", models.BigIntegerField(help_text="µs UTC")),
            ("duration_ms", models.FloatField(null=True)),
            ("replay_of", models.CharField(max_length=64, null=True)),
            ("qualified_name", models.CharField(default="", help_text="as told, else namespace.name", max_length=401)),
            ("mcp_server", models.CharField(max_length=200, null=True)),
            ("output_bytes", models.BigIntegerField(null=True)),
            ("approver", models.CharField(help_text="the principal who decided about it", max_length=160, null=True)),
            ("duration_class", models.SmallIntegerField(help_text="`class_of(duration_ms)`", null=True)),
            ("size_class", models.SmallIntegerField(help_text="`class_of(output_bytes)`", null=True)),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    related_name="calls",
                    to="conversations.conversation",
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(fields=["name", "started_at", "conversation", "called_seq"], name="call_by_name"),
                models.Index(fields=["agent", "started_at", "conversation", "called_seq"], name="call_by_agent"),
                models.Index(fields=["status", "started_at", "conversation", "called_seq"], name="call_by_status"),
                models.Index(fields=["conversation", "started_at", "called_seq"], name="call_by_conversation"),
                models.Index(
                    condition=models.Q(("namespace__isnull", False)),
                    fields=["qualified_name", "started_at", "conversation", "called_seq"],
                    name="call_by_qualified",
                ),
                models.Index(
                    condition=models.Q(("origin__isnull", False)),
                    fields=["origin", "started_at", "conversation", "called_seq"],
                    name="call_by_origin",
                ),
                models.Index(
                    condition=models.Q(("mcp_server__isnull", False)),
                    fields=["mcp_server", "started_at", "conversation", "called_seq"],
                    name="call_by_server",
                ),
                models.Index(
                    condition=models.Q(("approver__isnull", False)),
                    fields=["approver", "started_at", "conversation", "called_seq"],
                    name="call_by_approver",
                ),
                models.Index(
                    condition=models.Q(("replay_of__isnull", False)),
                    fields=["started_at", "conversation", "called_seq"],
                    name="call_replayed",
                ),
                models.Index(
                    condition=models.Q(("duration_class__isnull", False)),
                    fields=["duration_class", "started_at", "conversation", "called_seq"],
                    name="call_by_duration",
                ),
                models.Index(
                    condition=models.Q(("size_class__isnull", False)),
                    fields=["size_class", "started_at", "conversation", "called_seq"],
                    name="call_by_size",
                ),
                models.Index(
                    condition=models.Q(("schema__isnull", False)), fields=["schema", "id"], name="call_by_schema"
                ),
                models.Index(fields=["conversation", "called_seq"], name="call_by_seq"),
                models.Index(
                    condition=models.Q(("finished_seq__isnull", False)),
                    fields=["conversation", "finished_seq"],
                    name="call_by_end",
                ),
                models.Index(
                    django.db.models.expressions.CombinedExpression(models.F("started_at"), "+", models.Value(0)),
                    models.F("conversation"),
                    models.F("called_seq"),
                    name="call_newest",
                ),
                models.Index(
                    models.F("conversation"),
                    models.F("call_id"),
                    django.db.models.functions.comparison.Coalesce("run", models.Value("")),
                    models.F("called_seq"),
                    condition=models.Q(("call_id__isnull", False), ("finished_seq__isnull", True)),
                    name="call_open_by_id",
                ),
                models.Index(
                    models.F("conversation"),
                    models.F("name"),
                    django.db.models.functions.comparison.Coalesce("run", models.Value("")),
                    models.F("called_seq"),
                    condition=models.Q(("call_id__isnull", True), ("finished_seq__isnull", True)),
                    name="call_open_by_name",
                ),
                models.Index(
                    models.F("call_id"),
                    models.F("conversation"),
                    django.db.models.functions.comparison.Coalesce("run", models.Value("")),
                    models.F("nth"),
                    condition=models.Q(("call_id__isnull", False)),
                    name="call_by_call_id",
                ),
            ],
            "constraints": [models.UniqueConstraint(fields=("run", "call_id", "nth"), name="call_once")],
        },
    ),
    migrations.CreateModel(
        name="ToolVersion",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("team", models.CharField(max_length=100)),
            ("name", models.CharField(help_text="qualified", max_length=200)),
            ("hash", models.CharField(max_length=64)),
            ("first_at", models.BigIntegerField(help_text="µs UTC, by the database's clock")),
            ("last_at", models.BigIntegerField(help_text="µs UTC, when a worker last began or ceased to offer it")),
        ],
        options={
            "indexes": [models.Index(fields=["hash"], name="tool_version_by_hash")],
            "constraints": [models.UniqueConstraint(fields=("team", "name", "hash"), name="tool_version_once")],
        },
    ),
    migrations.CreateModel(
        name="Turn",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "conversation_id", "seq", blank=True, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("seq", models.BigIntegerField()),
            ("at", models.BigIntegerField(help_text="µs UTC, commit time")),
            ("agent", models.CharField(max_length=200)),
            ("model", models.CharField(max_length=200)),
            ("is_demo", models.BooleanField(default=False)),
            ("input_tokens", models.BigIntegerField()),
            ("output_tokens", models.BigIntegerField()),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    to="conversations.conversation",
                ),
            ),
            (
                "cached_tokens",
                models.BigIntegerField(db_default=0, default=0, help_text="of the input, read from a cache"),
            ),
            ("run", models.CharField(help_text="the run of ours that it is of", max_length=64, null=True)),
            (
                "worked_ms",
                models.BigIntegerField(db_default=0, default=0, help_text="how long its model took; 0 inside a tool"),
            ),
        ],
        options={
            "indexes": [
                models.Index(fields=["at"], name="turn_by_time"),
                models.Index(fields=["agent", "at"], name="turn_by_agent"),
            ],
        },
    ),
    migrations.CreateModel(
        name="AuditSpan",
        fields=[
            ("span", models.BigIntegerField(primary_key=True, serialize=False)),
            ("earliest", models.BigIntegerField(help_text="µs UTC")),
            ("latest", models.BigIntegerField(help_text="µs UTC")),
        ],
    ),
    migrations.CreateModel(
        name="AlarmCause",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("seq", models.BigIntegerField()),
            ("kind", models.CharField(max_length=20)),
            ("at", models.BigIntegerField(help_text="µs UTC, the event's")),
            ("run", models.CharField(max_length=64, null=True)),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    to="conversations.conversation",
                ),
            ),
        ],
    ),
    migrations.CreateModel(
        name="AlertRule",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("name", models.CharField(max_length=100)),
            (
                "kind",
                models.CharField(
                    help_text="approval_waiting, budget_passed, run_failed, run_stuck or record_gap", max_length=20
                ),
            ),
            ("after_s", models.IntegerField(default=0, help_text="seconds that an approval request may wait")),
            ("agent", models.CharField(default="", help_text="an agent's name; empty: every agent", max_length=200)),
            (
                "grouping",
                models.CharField(default="conversation", help_text="conversation, agent or all", max_length=12),
            ),
            ("form", models.CharField(help_text="post, slack or email", max_length=5)),
            ("url", models.CharField(default="", help_text="of a webhook; a secret", max_length=2000)),
            ("secret", models.CharField(default="", help_text="signs a webhook's requests", max_length=100)),
            (
                "recipients",
                models.CharField(default="", help_text="e-mail addresses, comma-separated", max_length=2000),
            ),
            ("is_enabled", models.BooleanField(default=True)),
            ("sends_end", models.BooleanField(default=False, help_text="whether the end of an alarm is sent, too")),
            ("since", models.BigIntegerField(help_text="µs UTC; events from before raise no alarm")),
            ("version", models.IntegerField(default=1)),
            ("updated_by", models.CharField(max_length=160)),
            ("updated_at", models.BigIntegerField(help_text="µs UTC")),
            ("removed_at", models.BigIntegerField(help_text="µs UTC; its alarms stay", null=True)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(
                    condition=models.Q(("removed_at", None)), fields=("name",), name="alertrule_name"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="Alarm",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("group", models.CharField(help_text="SHA-256 of what it stands for", max_length=64)),
            ("kind", models.CharField(help_text="the rule's", max_length=20)),
            (
                "cause",
                models.CharField(help_text="what is the matter, without names or numbers of one case", max_length=200),
            ),
            ("conversation", models.CharField(default="", help_text="the newest case's", max_length=200)),
            ("seq", models.BigIntegerField(default=0, help_text="the newest case's event")),
            ("agent", models.CharField(default="", help_text="the newest case's", max_length=200)),
            ("detail", models.CharField(default="", help_text="of the newest case", max_length=300)),
            (
                "subjects",
                models.TextField(
                    default="[]", help_text="JSON: what it is about as long as that lasts (approvals, runs)"
                ),
            ),
            ("count", models.BigIntegerField(default=1)),
            ("opened_at", models.BigIntegerField(help_text="µs UTC")),
            ("last_at", models.BigIntegerField(help_text="µs UTC")),
            ("closed_at", models.BigIntegerField(help_text="µs UTC", null=True)),
            ("closed_by", models.CharField(default="", max_length=160)),
            ("notified_at", models.BigIntegerField(help_text="µs UTC; null: shelved since it opened", null=True)),
            (
                "rule",
                models.ForeignKey(
                    db_index=False, on_delete=django.db.models.deletion.CASCADE, to="conversations.alertrule"
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(fields=["opened_at"], name="alarm_by_time"),
                models.Index(condition=models.Q(("closed_at", None)), fields=["last_at"], name="alarm_open"),
                models.Index(
                    condition=models.Q(("closed_at__isnull", False)), fields=["closed_at"], name="alarm_closed"
                ),
            ],
            "constraints": [
                models.UniqueConstraint(
                    condition=models.Q(("closed_at", None)), fields=("rule", "group"), name="alarm_open_once"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="Shelf",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("group", models.CharField(default="", help_text="an alarm's; empty: the whole rule", max_length=64)),
            ("until", models.BigIntegerField(help_text="µs UTC")),
            ("reason", models.CharField(default="", max_length=500)),
            ("by", models.CharField(max_length=160)),
            ("at", models.BigIntegerField(help_text="µs UTC")),
            (
                "rule",
                models.ForeignKey(
                    db_index=False, on_delete=django.db.models.deletion.CASCADE, to="conversations.alertrule"
                ),
            ),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("rule", "group"), name="shelf_once")],
        },
    ),
    migrations.CreateModel(
        name="AlertDelivery",
        fields=[
            ("id", models.CharField(max_length=40, primary_key=True, serialize=False)),
            ("subject", models.CharField(help_text="what it says, in a line", max_length=300)),
            ("body", models.TextField(help_text="JSON, as it is sent by a plain POST")),
            (
                "status",
                models.CharField(default="waiting", help_text="waiting, delivered, failed or discarded", max_length=10),
            ),
            ("attempts", models.IntegerField(default=0)),
            ("tries_left", models.IntegerField(help_text="until it is a dead letter")),
            ("due_at", models.BigIntegerField(help_text="µs UTC; while it is sent, the end of the lease")),
            ("is_sending", models.BooleanField(default=False)),
            ("created_at", models.BigIntegerField(help_text="µs UTC")),
            ("done_at", models.BigIntegerField(help_text="µs UTC", null=True)),
            ("http_status", models.IntegerField(help_text="of the last answer", null=True)),
            ("error", models.CharField(default="", help_text="of the last attempt", max_length=300)),
            (
                "alarm",
                models.ForeignKey(
                    db_index=False,
                    help_text="null: a test",
                    null=True,
                    on_delete=django.db.models.deletion.CASCADE,
                    to="conversations.alarm",
                ),
            ),
            (
                "rule",
                models.ForeignKey(
                    db_index=False, on_delete=django.db.models.deletion.CASCADE, to="conversations.alertrule"
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(condition=models.Q(("status", "waiting")), fields=["due_at"], name="delivery_due"),
                models.Index(condition=models.Q(("status", "failed")), fields=["created_at"], name="delivery_failed"),
                models.Index(
                    models.OrderBy(models.F("done_at"), descending=True),
                    condition=models.Q(("done_at__isnull", False)),
                    name="delivery_done",
                ),
                models.Index(condition=models.Q(("alarm__isnull", False)), fields=["alarm"], name="delivery_by_alarm"),
            ],
        },
    ),
    migrations.CreateModel(
        name="ModelUsage",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "conversation_id", "key", blank=True, editable=False, primary_key=True, serialize=False
                ),
            ),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    to="conversations.conversation",
                ),
            ),
            ("key", models.CharField(max_length=410)),
            ("agent", models.CharField(max_length=200)),
            ("model", models.CharField(max_length=200)),
            ("is_demo", models.BooleanField(default=False)),
            ("turns", models.BigIntegerField(default=0)),
            (
                "unknown_turns",
                models.BigIntegerField(default=0, help_text="of these, ours whose server did not tell their tokens"),
            ),
            ("input_tokens", models.BigIntegerField(default=0)),
            ("cached_tokens", models.BigIntegerField(default=0)),
            ("output_tokens", models.BigIntegerField(default=0)),
            ("calls", models.BigIntegerField(default=0)),
            (
                "worked_ms",
                models.BigIntegerField(default=0, help_text="of models and tools; not of what happened inside a tool"),
            ),
        ],
    ),
    migrations.CreateModel(
        name="BudgetLimit",
        fields=[
            ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
            ("scope", models.CharField(help_text="run, conversation or agent (of 24 hours)", max_length=12)),
            ("agent", models.CharField(default="", help_text="an agent's name; empty: every agent", max_length=200)),
            ("measure", models.CharField(help_text="tokens, cost (US dollars), calls or minutes", max_length=8)),
            ("amount", models.DecimalField(decimal_places=4, max_digits=16)),
            ("note", models.CharField(default="", max_length=500)),
            ("made_by", models.CharField(max_length=160)),
            ("made_at", models.BigIntegerField(help_text="µs UTC")),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("scope", "agent", "measure"), name="budget_once")],
        },
    ),
    migrations.CreateModel(
        name="BudgetRaise",
        fields=[
            ("approval", models.CharField(max_length=64, primary_key=True, serialize=False)),
            ("budget", models.CharField(max_length=64)),
            (
                "place",
                models.CharField(help_text="the run, the conversation's key or the agent's name", max_length=200),
            ),
            ("amount", models.DecimalField(decimal_places=4, max_digits=16)),
            ("at", models.BigIntegerField(help_text="µs UTC")),
        ],
        options={
            "indexes": [models.Index(fields=["budget", "place", "at"], name="budget_raised")],
        },
    ),
    migrations.CreateModel(
        name="Visit",
        fields=[
            (
                "user",
                models.OneToOneField(
                    on_delete=django.db.models.deletion.CASCADE,
                    primary_key=True,
                    serialize=False,
                    to=settings.AUTH_USER_MODEL,
                ),
            ),
            ("last_at", models.BigIntegerField(help_text="µs UTC, of the newest page they were sent, by the minute")),
            (
                "left_at",
                models.BigIntegerField(
                    default=0, help_text="µs UTC, when they left before they came back; 0: dismissed"
                ),
            ),
            ("has_dismissed_steps", models.BooleanField(default=False)),
        ],
    ),
    migrations.CreateModel(
        name="Annotation",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "conversation_id", "seq", blank=True, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("seq", models.BigIntegerField()),
            ("about", models.BigIntegerField()),
            ("author", models.CharField(help_text="the principal who did it", max_length=160)),
            ("thumb", models.CharField(help_text="up, down or withdrawn; empty: as it was", max_length=10)),
            ("speaker", models.CharField(help_text="who said or did what it is about", max_length=200)),
            ("at", models.BigIntegerField(help_text="µs UTC, commit time")),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    on_delete=django.db.models.deletion.CASCADE,
                    to="conversations.conversation",
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(fields=["conversation", "about"], name="annotation_about"),
                models.Index(fields=["at"], name="annotation_by_time"),
            ],
        },
    ),
    migrations.CreateModel(
        name="Checkpoint",
        fields=[
            ("size", models.BigIntegerField(primary_key=True, serialize=False)),
            ("root", models.CharField(max_length=64)),
            ("at", models.BigIntegerField(help_text="µs UTC")),
            ("note", models.TextField(help_text="the signed note; the newest one has the signature of ML-DSA-44, too")),
        ],
    ),
    migrations.CreateModel(
        name="TreeChain",
        fields=[
            (
                "conversation",
                models.BigIntegerField(help_text="its row; 0: the audit log", primary_key=True, serialize=False),
            ),
            ("seq", models.BigIntegerField()),
        ],
    ),
    migrations.CreateModel(
        name="TreeNode",
        fields=[
            (
                "pk",
                models.CompositePrimaryKey(
                    "level", "index", blank=True, editable=False, primary_key=True, serialize=False
                ),
            ),
            ("level", models.SmallIntegerField(help_text="its leaves are 2 ** level")),
            ("index", models.BigIntegerField()),
            ("hash", models.CharField(max_length=64)),
        ],
    ),
    migrations.CreateModel(
        name="Witnessed",
        fields=[
            (
                "witness",
                models.CharField(
                    help_text="as it is configured, without secrets", max_length=200, primary_key=True, serialize=False
                ),
            ),
            ("size", models.BigIntegerField(default=0)),
            ("at", models.BigIntegerField(default=0, help_text="µs UTC")),
            ("signatures", models.TextField(default="", help_text="its lines of signatures, of those that sign")),
            (
                "problem",
                models.CharField(default="", help_text="why the last try failed; empty: it did not", max_length=500),
            ),
        ],
    ),
    migrations.CreateModel(
        name="TreeLeaf",
        fields=[
            ("index", models.BigIntegerField(primary_key=True, serialize=False)),
            (
                "chain",
                models.CharField(
                    help_text="SHA-256 of the conversation's id; of the audit log: its own", max_length=64
                ),
            ),
            ("seq", models.BigIntegerField()),
            ("hash", models.CharField(max_length=64)),
        ],
        options={
            "constraints": [models.UniqueConstraint(fields=("chain", "seq"), name="tree_leaf_once")],
        },
    ),
    migrations.CreateModel(
        name="RetentionRule",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("days", models.IntegerField()),
            ("kind", models.CharField(default="", max_length=100)),
            (
                "team",
                models.CharField(default="", help_text="of the agent that handles the conversation", max_length=200),
            ),
            ("conversation", models.CharField(default="", help_text="its id", max_length=200)),
            ("reason", models.CharField(max_length=500)),
            ("made_by", models.CharField(max_length=160)),
            ("made_at", models.BigIntegerField(help_text="µs UTC")),
            ("removed_at", models.BigIntegerField(help_text="µs UTC", null=True)),
            ("ran_at", models.BigIntegerField(help_text="µs UTC, when the job last went through it", null=True)),
            ("redacted", models.BigIntegerField(default=0, help_text="events that lost their words, then")),
            ("held", models.BigIntegerField(default=0, help_text="events that were held back, then")),
        ],
    ),
    migrations.CreateModel(
        name="RedactionRequest",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("scope", models.TextField(help_text="JSON: what is to be redacted; emptied of words when it is decided")),
            ("reason", models.CharField(max_length=500)),
            ("requested_by", models.CharField(max_length=160)),
            ("requested_at", models.BigIntegerField(help_text="µs UTC")),
            ("decided_by", models.CharField(default="", max_length=160)),
            ("decided_at", models.BigIntegerField(help_text="µs UTC", null=True)),
            ("is_confirmed", models.BooleanField(null=True)),
        ],
        options={
            "indexes": [
                models.Index(condition=models.Q(("decided_at", None)), fields=["id"], name="redaction_pending")
            ],
        },
    ),
    migrations.CreateModel(
        name="LegalHold",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("is_regulated", models.BooleanField(default=False, help_text="it is never released")),
            ("reason", models.CharField(max_length=500)),
            ("placed_by", models.CharField(max_length=160)),
            ("placed_at", models.BigIntegerField(help_text="µs UTC")),
            ("released_by", models.CharField(default="", max_length=160)),
            ("released_at", models.BigIntegerField(help_text="µs UTC", null=True)),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    to="conversations.conversation",
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(condition=models.Q(("released_at", None)), fields=["conversation"], name="hold_in_force")
            ],
        },
    ),
    migrations.CreateModel(
        name="Redaction",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("mark", models.CharField(help_text="`erased_by` of these events", max_length=64, unique=True)),
            ("seqs", models.TextField(help_text="JSON: [seq]")),
            ("at", models.BigIntegerField(help_text="µs UTC")),
            ("by", models.CharField(max_length=160)),
            ("reason", models.CharField(max_length=500)),
            (
                "field",
                models.CharField(
                    default="", help_text="of a tool call; empty: all that the events said", max_length=200
                ),
            ),
            ("is_folded", models.BooleanField(default=True, help_text="rows that events make were made anew after it")),
            (
                "conversation",
                models.ForeignKey(
                    db_constraint=False,
                    db_index=False,
                    help_text="none: entries of the audit log",
                    null=True,
                    on_delete=django.db.models.deletion.PROTECT,
                    to="conversations.conversation",
                ),
            ),
        ],
        options={
            "indexes": [
                models.Index(
                    condition=models.Q(("is_folded", False)), fields=["conversation"], name="redaction_unfolded"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="AgentElsewhere",
        fields=[
            ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("name", models.CharField(max_length=100, unique=True)),
            ("url", models.CharField(max_length=2000)),
            ("token", models.CharField(default="", help_text="sent there as a bearer; a secret", max_length=2000)),
            ("description", models.CharField(default="", max_length=1000)),
            ("made_by", models.CharField(max_length=160)),
            ("made_at", models.BigIntegerField(help_text="µs UTC")),
        ],
    ),
]


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ("conversations", "0001_initial"),
        ("conversations", "0002_search"),
        ("conversations", "0003_call_newest"),
        ("conversations", "0004_audit"),
        ("conversations", "0005_guests"),
        ("conversations", "0006_lists"),
        ("conversations", "0007_open_calls"),
        ("conversations", "0008_failed_runs"),
        ("conversations", "0009_alerts"),
        ("conversations", "0010_next_step"),
        ("conversations", "0011_recent_activity"),
        ("conversations", "0012_model_usage"),
        ("conversations", "0013_budgets"),
        ("conversations", "0014_visits"),
        ("conversations", "0015_list_of_owned"),
        ("conversations", "0016_annotations"),
        ("conversations", "0017_evidence"),
        ("conversations", "0018_redaction"),
        ("conversations", "0019_agents_elsewhere"),
        ("conversations", "0020_audit_digests"),
        ("conversations", "0021_key_digest"),
        ("conversations", "0022_run_team"),
        ("conversations", "0023_escalated_requests"),
    ]

    dependencies = []

    operations = [CreateModels(MODELS), migrations.RunPython(create_search)]
