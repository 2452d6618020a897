"""An evidence bundle: a zip that anybody can check without this server, by the `verify.py` in it."""

import base64
import hashlib
import html
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from conversations.core.errors import Invalid, NotFound, Unavailable
from conversations.core.micros import to_datetime
from conversations.events.payload import parse
from conversations.evidence import bundle_audit, checkpoints, notes, state, tree, witnesses
from conversations.evidence.checkpoints import Signer
from conversations.evidence.notes import Signature, VerifierKey
from conversations.evidence.signing_key import SigningKey
from conversations.import_export.export import export
from conversations.models import Approval, AutoApprovalRule, Conversation, Policy, ToolCall, Witnessed
from conversations.models import Checkpoint as CheckpointRow

MAX_CONVERSATIONS = 200  # conversations of one bundle
STATES = ("open", "paused", "person", "waiting")  # that a bundle can be filtered by
VERIFIER = Path(__file__).with_name("offline_verify.py")
MANIFEST = "switchboard evidence bundle 1\n"
README = """Evidence from a Switchboard record.

  conversations/  one file a conversation: a line of JSON for each event, with salts and hashes
  proofs/         where each conversation stands in the signed tree (c2sp.org/tlog-proof@v1); in audit.jsonl the links
                  from each audit entry to the next signed one: of entries about others digests alone
  checkpoint.txt  the signed head of the tree, with the signatures of witnesses (c2sp.org/tlog-checkpoint)
  timestamps/     when the checkpoint was there at the latest (RFC 3161), where a time stamping authority is a witness:
                  openssl ts -verify -in 1.tst -token_in -data checkpoint-text.txt -CAfile AUTHORITY.pem
  keys.txt        the public keys of the record and of its witnesses
  approvals.json, audit.jsonl, policy.json   what was approved, by whom, under which rules
  transcript.html the conversations, to be read
  manifest.txt    the SHA-256 of every file, signed

Check it:  python3 verify.py --key 'KEY'
KEY is the first line of keys.txt as the record's owner published it elsewhere (GET /checkpoint/keys). verify.py needs
Python 3.8 and nothing else; read it before you run it.
"""


def keys_of(*, approval: str = "", call: str = "") -> list[str]:
    """Return the conversation of an approval or of a tool call. Raises `NotFound`."""
    rows = Approval.objects.filter(id=approval) if approval else ToolCall.objects.filter(id=call)
    row = rows.select_related("conversation").first()
    if row is None:
        raise NotFound(f"there is no {'approval' if approval else 'tool call'} {(approval or call)[:80]!r}")
    return [row.conversation.key]


def keys_matching(*, q: str = "", participant: str = "", state: str = "") -> list[str]:
    """Return the conversations that the list shows by these filters, demos left out. Raises `Invalid` for a wrong one,
    none, or more than a bundle holds; `NotFound` where nothing matches."""
    from conversations.conversation import conversation_list  # with what draws rows: only a filter needs it

    if not (q.split() or participant or state):
        raise Invalid("must name conversations, or a filter: q, participant, state", field="q")
    if state and state not in STATES:
        raise Invalid(f"must be one of {', '.join(STATES)}; got {state[:40]!r}", field="state")
    keys: list[str] = []
    before: str | None = ""
    while before is not None:
        page = conversation_list.newest_conversations(
            q=q, participant=participant, state=state, before=before, limit=MAX_CONVERSATIONS
        )
        signed = Conversation.objects.filter(key__in=[row.key for row in page.rows], is_demo=False)
        keys += signed.newest_first().values_list("key", flat=True)
        if len(keys) > MAX_CONVERSATIONS:
            raise Invalid(f"the filter matches more than {MAX_CONVERSATIONS} conversations: narrow it down", field="q")
        before = page.cursor
    if not keys:
        raise NotFound("no conversation matches")
    return keys


def write(
    signer: Signer, keys: Sequence[str], witness_keys: Sequence[VerifierKey] = (), *,
    show: Callable[[], None] = lambda: None,
) -> IO[bytes]:  # fmt: skip
    """Write the bundle of some conversations into a temporary file, read from its beginning.

    Signs what moved first, and has `show` give that to the witnesses. Raises `NotFound`, `Invalid`, and `Unavailable`
    where the keys are elsewhere.
    """
    if not 0 < len(keys) <= MAX_CONVERSATIONS:
        raise Invalid(f"must be 1 to {MAX_CONVERSATIONS} conversations; got {len(keys)}")
    key = checkpoints.require_key(signer)
    checkpoints.make(signer)
    show()
    row = checkpoints.newest()
    if row is None:
        raise NotFound("the record has not been signed yet")
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    try:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            _Bundle(archive, key, row, list(dict.fromkeys(keys)), witness_keys).write()
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


class _Bundle:
    """One bundle on its way into a zip."""

    def __init__(
        self, archive: zipfile.ZipFile, key: SigningKey, row: CheckpointRow, keys: Sequence[str],
        witness_keys: Sequence[VerifierKey],
    ) -> None:  # fmt: skip
        self._archive, self._key, self._row, self._keys = archive, key, row, keys
        self._witness_keys = witness_keys
        self._note = state.with_witnesses(row)
        self._digests: list[str] = []

    def write(self) -> None:
        for number, key in enumerate(self._keys, 1):
            self._add(f"conversations/{number}.jsonl", export(key))
            self._add(f"proofs/{number}.tlog-proof", [self._proof(key).encode()])
        conversations = Conversation.objects.filter(key__in=self._keys)
        self._add("checkpoint.txt", [self._note.encode()])
        self._add_stamps()
        keys = [*self._key.verifier_keys, *self._witness_keys]
        self._add("keys.txt", [f"{key}\n".encode() for key in keys])
        self._add("approvals.json", [_json(list(_approvals(conversations)))])
        self._add("audit.jsonl", (_json(entry) + b"\n" for entry in bundle_audit.entries(conversations)))
        proofs = bundle_audit.links(conversations, self._row.size)
        self._add("proofs/audit.jsonl", (_json(proof) + b"\n" for proof in proofs))
        self._add("policy.json", [_json(_policy())])
        self._add("transcript.html", _transcript(self._keys, self._row))
        self._add("README.txt", [README.encode()])
        self._archive.writestr("manifest.txt", self._manifest())
        self._archive.writestr("verify.py", VERIFIER.read_bytes())

    def _add_stamps(self) -> None:
        """Add time stamps of this checkpoint, and what they are of."""
        rows = Witnessed.objects.filter(size=self._row.size).order_by("witness")
        tokens = [token for row in rows if (token := witnesses.stamp_of(row.signatures))]
        for number, token in enumerate(tokens, 1):
            self._add(f"timestamps/{number}.tst", [token])
        if tokens:
            self._add("timestamps/checkpoint-text.txt", [notes.parse(self._row.note).text.encode()])

    def _add(self, name: str, pieces: Any) -> None:
        digest = hashlib.sha256()
        with self._archive.open(name, "w", force_zip64=True) as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
        self._digests.append(f"{digest.hexdigest()}  {name}\n")

    def _manifest(self) -> str:
        """Sign what every file is, but for the verifier, which is public."""
        text = MANIFEST + "".join(self._digests)
        first, signature = self._key.verifier_keys[0], self._key.sign_text(text)
        return notes.join(text, [Signature(first.name, first.key_id, signature)])

    def _proof(self, key: str) -> str:
        """Prove the newest leaf of a conversation."""
        id_ = Conversation.objects.values_list("key", "key_digest").get(key=key)
        leaf = checkpoints.leaf_of(tree.chain_of(*id_), self._row.size)
        if leaf is None:
            raise Unavailable(f"conversation {key!r} is not signed: it is a demo, or still being imported")
        extra = base64.b64encode(json.dumps({"seq": leaf.seq}).encode()).decode()
        path = "".join(f"{base64.b64encode(hash_).decode()}\n" for hash_ in tree.inclusion(leaf.index, self._row.size))
        return f"c2sp.org/tlog-proof@v1\nextra {extra}\nindex {leaf.index}\n{path}\n{self._note}"


def _approvals(conversations: Any) -> Iterator[dict[str, Any]]:
    names = (
        "id",
        "tool_call",
        "run",
        "asked_seq",
        "status",
        "decision",
        "decided_by",
        "decided_at",
        "decided_seq",
        "rule",
    )
    rows = Approval.objects.filter(conversation__in=conversations).select_related("conversation")
    for row in rows.order_by("conversation_id", "asked_seq").iterator(chunk_size=500):
        yield {"conversation_id": row.conversation.key, **{name: getattr(row, name) for name in names}}


def _policy() -> dict[str, Any]:
    rules = Policy.objects.order_by("agent", "tool").values(
        "agent", "tool", "rule", "effect", "deadline_s", "on_expiry", "notify", "four_eyes", "no_always", "updated_by"
    )
    names = (
        "id",
        "tool",
        "agent",
        "is_exact",
        "uses",
        "used",
        "until",
        "made_by",
        "made_at",
        "revoked_by",
        "revoked_at",
    )
    return {
        "policies": list(rules),
        "auto_approval_rules": list(AutoApprovalRule.objects.order_by("id").values(*names)),
    }


def _transcript(keys: Sequence[str], row: CheckpointRow) -> Iterator[bytes]:
    """Write the conversations to be read: nothing in it runs or is fetched."""
    yield (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Evidence</title>'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        "<style>body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
        "article{border-top:1px solid #ccc;padding:.5rem 0}header{color:#555;font-size:13px}"
        "p{white-space:pre-wrap;overflow-wrap:anywhere;margin:.25rem 0}</style>"
        f"<h1>Evidence</h1><p>Signed head: {row.size:,} leaves, root {row.root}</p>"
    ).encode()
    for key in keys:
        yield f'<h2 dir="auto">{html.escape(key)}</h2>'.encode()
        lines = export(key)
        next(lines)
        for line in lines:
            yield _article(json.loads(line)).encode()
    yield b"</html>\n"


def _article(event: dict[str, Any]) -> str:
    payload = parse(event["body"].encode("utf-8", "replace"))
    words = "Redacted" if event["salt"] is None else payload.words or event["body"]
    at = to_datetime(event["at"])
    head = f"{event['seq']} · {at:%Y-%m-%d %H:%M:%S} UTC · {event['kind']} · {event['principal']}"
    return f'<article><header>{html.escape(head)}</header><p dir="auto">{html.escape(words)}</p></article>\n'


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace")
