"""The tables (§5), one module a noun."""

from conversations.models.agent import Agent, SessionItem, ToolSchema, ToolVersion
from conversations.models.agent_elsewhere import AgentElsewhere
from conversations.models.alerts import Alarm, AlarmCause, AlertDelivery, AlertRule, Shelf
from conversations.models.annotation import Annotation
from conversations.models.approval import Approval
from conversations.models.audit import AuditEntry, AuditHead, AuditSpan
from conversations.models.auto_approval import AutoApprovalRule
from conversations.models.budget import BudgetLimit, BudgetRaise
from conversations.models.conversation import Conversation, Participant, ReadMarker
from conversations.models.event import Event
from conversations.models.evidence import Checkpoint, TreeChain, TreeLeaf, TreeNode, Witnessed
from conversations.models.meta import Meta
from conversations.models.node import Node
from conversations.models.people import Grant, Role, SignInLink, Token, User
from conversations.models.policy import Policy
from conversations.models.post import Post
from conversations.models.quarantine import Quarantine
from conversations.models.redaction import LegalHold, Redaction, RedactionRequest, RetentionRule
from conversations.models.redis_position import RedisPosition
from conversations.models.response import Response
from conversations.models.run import Run
from conversations.models.saved_view import SavedView
from conversations.models.telemetry_trace import TelemetryTrace
from conversations.models.tool_call import ToolCall
from conversations.models.turn import ModelUsage, Turn
from conversations.models.visit import Visit
