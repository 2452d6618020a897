#!/usr/bin/env python3
"""Check an evidence bundle without Switchboard: python3 verify.py [--key KEY]... [FOLDER or ZIP]

Needs Python 3.8 or later and nothing else. Exit code 0: nothing in the bundle was changed; 1: the first bad thing is
named. KEY is the record's verifier key as you know it, apart from this bundle (`GET /checkpoint/keys` of the server, or
a paper); without it the bundle's own keys.txt is taken, which shows only that the bundle agrees with itself.

What is checked: the Ed25519 signatures of the checkpoint and of witnesses; that each conversation's newest signed event
is a leaf of the signed Merkle tree (RFC 6962); each event's digest, hash and link to the one before; that words are
missing only where an event says that they were redacted; audit entries, by their links to a leaf of the tree; the
SHA-256 of every file, as the record signed it.
What is not: ML-DSA-44 signatures (they need a library), and whether the clocks were right.
"""

import base64
import hashlib
import io
import json
import sys
import zipfile
from pathlib import Path

P = 2**255 - 19
D = -121665 * pow(121666, P - 2, P) % P
ORDER = 2**252 + 27742317777372353535851937790883648493
ROOT = pow(2, (P - 1) // 4, P)


class Bad(Exception):
    """Something is not as it was signed."""


def recovered_x(y, sign):
    """Return x of a point of the curve; None where there is none."""
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    return P - x if x & 1 != sign else x


def point_of(data):
    """Read a point; None where the bytes are none."""
    number = int.from_bytes(data, "little")
    y, sign = number & ((1 << 255) - 1), number >> 255
    x = recovered_x(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


def add(p, q):
    """Add two points in extended coordinates."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(number, point):
    """Multiply a point."""
    result = (0, 1, 1, 0)
    while number:
        if number & 1:
            result = add(result, point)
        point = add(point, point)
        number >>= 1
    return result


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signed(public, message, signature):
    """Return whether an Ed25519 signature is right (RFC 8032)."""
    a, r, s = point_of(public), point_of(signature[:32]), int.from_bytes(signature[32:], "little")
    if len(public) != 32 or len(signature) != 64 or a is None or r is None or s >= ORDER:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    left, right = times(s, BASE), add(r, times(k, a))
    return not (left[0] * right[2] - right[0] * left[2]) % P and not (left[1] * right[2] - right[1] * left[2]) % P


def read_key(text):
    """Read NAME+ID+BASE64; return name, id, type and public key."""
    name, stated, encoded = text.strip().split("+", 2)
    material = base64.b64decode(encoded)
    computed = hashlib.sha256(name.encode() + b"\n" + material).digest()[:4]
    if computed.hex() != stated.lower():
        raise Bad(f"the id of the key {name} is not {stated}")
    return name, computed, material[0], material[1:]


def read_note(text):
    """Return the text of a signed note (C2SP) and its signatures: name, key id, bytes."""
    body, _, below = text.rpartition("\n\n")
    signatures = []
    for line in below.splitlines():
        name, _, encoded = line.replace("\N{EM DASH} ", "", 1).partition(" ")
        value = base64.b64decode(encoded)
        signatures.append((name, value[:4], value[4:]))
    return body + "\n", signatures


def signers(text, signatures, keys):
    """Return the names of the keys whose signatures of a text are right; a wrong one is bad."""
    good = []
    for name, key_id, algorithm, public in keys:
        for signer, signed_id, signature in signatures:
            if (signer, signed_id) != (name, key_id) or algorithm not in (1, 4):
                continue
            message = text.encode()
            if algorithm == 4:
                at = int.from_bytes(signature[:8], "big")
                message, signature = f"cosignature/v1\ntime {at}\n{text}".encode(), signature[8:]
            if not is_signed(public, message, signature):
                raise Bad(f"the signature of {name} is invalid: the text was changed, or it is forged")
            good.append(name)
    return good


def read_checkpoint(text):
    """Return origin, size and root."""
    origin, size, root = text.split("\n")[:3]
    return origin, int(size), base64.b64decode(root)


def root_by_path(leaf, index, size, path):
    """Return the root to which an audit path leads (RFC 6962); None for a path that no such tree has."""
    if not 0 <= index < size:
        return None
    root, node, last = leaf, index, size - 1
    for sibling in path:
        if not last:
            return None
        if node & 1 or node == last:
            root = hashlib.sha256(b"\1" + sibling + root).digest()
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            root = hashlib.sha256(b"\1" + root + sibling).digest()
        node, last = node >> 1, last >> 1
    return root if not last else None


def leaf_of(chain, seq, head):
    """Return the hash of a leaf: that a chain had this head at this number."""
    return hashlib.sha256(f"\0switchboard-head/1\n{chain}\n{seq}\n{head}".encode()).digest()


def read_proof(text):
    """Read c2sp.org/tlog-proof@v1; return the number of the event, the leaf's index, the path, and the checkpoint."""
    head, _, checkpoint = text.partition("\n\n")
    lines = head.split("\n")
    if lines[0] != "c2sp.org/tlog-proof@v1":
        raise Bad("it is not a tlog-proof")
    extra = json.loads(base64.b64decode(lines[1].replace("extra ", "", 1)))
    return extra["seq"], int(lines[2].replace("index ", "", 1)), [base64.b64decode(x) for x in lines[3:]], checkpoint


def marked(value):
    """Write a text that may be null."""
    return "" if value is None else f"={value}"


def joined_hash(*parts):
    """Return the SHA-256 over these, joined by NUL."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def link(prev, key, row, version, erased):
    """Return the hash that an event erased by then must have; `key` is NUL and the id's digest in version 3."""
    columns = (prev, key, row["seq"], row["kind"], row["at"], row["principal"])
    if version == 1:
        return joined_hash(*columns, row["event_id"] or "", row["digest"])
    turn = "" if row["turn"] is None else row["turn"]
    rest = (marked(row["run"]), turn, marked(row["event_id"]), marked(erased), row["digest"])
    return joined_hash(f"switchboard/{version}", *columns, *rest)


def tombstone_digest(row):
    """Return what an event.redacted must name of an event."""
    return joined_hash("switchboard/2 tombstone", row["seq"], marked(row["erased_by"]), row["body"])


class CheckedConversation:
    """The lines of one conversation, walked one by one."""

    def __init__(self, header):
        self.key, self.head = header["conversation_id"], header["head_seq"]
        self.salt, self.digest = header.get("key_salt"), header.get("key_digest", "")
        self.identity = f"\0{self.digest}" if self.digest else self.key
        self.chain = joined_hash(self.identity)  # its name in the tree
        self.seq, self.hash, self.version = 0, self.chain, 3 if self.digest else 1
        self.hashes, self.unnamed, self.decisions, self.new_ids = {}, {}, {}, set()

    def take(self, row):
        """Check the next event."""
        self.seq += 1
        place = f"conversation {self.key!r}, event {self.seq}"
        if row["seq"] != self.seq:
            raise Bad(f"{place}: missing; event {row['seq']} is in its place")
        if row["salt"] is None:
            self.unnamed[self.seq] = tombstone_digest(row)
        elif hashlib.sha256(salt_of(row["salt"], place) + row["body"].encode()).hexdigest() != row["digest"]:
            raise Bad(f"{place}: the body was changed")
        versions = [v for v in ([3] if self.digest else [2, 1]) if v >= self.version]
        erasers = {row["erased_by"], *([None] if row["salt"] is None else [])}  # None: erased since it was written
        links = {link(self.hash, self.identity, row, v, erased): v for v in versions for erased in erasers}
        if row["hash"] not in links:
            raise Bad(f"{place}: changed: its hash does not match its contents and the previous event")
        self.version = links[row["hash"]]
        self.hash = self.hashes[self.seq] = row["hash"]
        self.note(row)

    def note(self, row):
        """Take in what an event says about others."""
        if row["principal"].partition(":")[0] not in ("user", "system"):
            return
        if row["kind"] == "event.redacted":
            for redacted in json.loads(row["body"])["events"]:
                if self.unnamed.get(redacted["seq"]) == redacted["digest"]:
                    del self.unnamed[redacted["seq"]]
        elif row["kind"] == "conversation.id_erased":
            self.new_ids.add(json.loads(row["body"]).get("new_id"))
        elif row["kind"] == "approval.decided":  # a tombstone has both fields, and `end` checks who names it
            body = json.loads(row["body"])
            self.decisions[body.get("approval_id")] = body.get("decision")

    def end(self):
        """Check that it is whole, and that its id is that of the digest or was erased."""
        place = f"conversation {self.key!r}"
        if self.seq != self.head:
            raise Bad(f"{place}, event {self.seq + 1}: missing; it had {self.head}")
        if self.unnamed:
            raise Bad(f"{place}, event {min(self.unnamed)}: text is missing, and no event.redacted names what is left")
        is_erased = not self.salt and self.key == f"erased-{self.digest[:16]}" and self.key in self.new_ids
        salted = salt_of(self.salt, place) + self.key.encode() if self.salt else b""
        if (self.digest or self.salt) and not is_erased and hashlib.sha256(salted).hexdigest() != self.digest:
            raise Bad(f"{place}: its id was changed")


def salt_of(text, place):
    """Return a salt's bytes."""
    salt = bytes.fromhex(text)
    if len(salt) != 16:
        raise Bad(f"{place}: the salt was changed")
    return salt


class Bundle:
    """The files of a folder, or of a zip file."""

    def __init__(self, path):
        self.path, self.zip = path, zipfile.ZipFile(path) if path.is_file() else None

    def names(self):
        """Return the names of all files."""
        if self.zip:
            return sorted(name for name in self.zip.namelist() if not name.endswith("/"))
        return sorted(str(p.relative_to(self.path).as_posix()) for p in self.path.rglob("*") if p.is_file())

    def read(self, name):
        """Return a file's bytes."""
        try:
            return self.zip.read(name) if self.zip else (self.path / name).read_bytes()
        except (KeyError, FileNotFoundError):
            raise Bad(f"{name} is missing") from None

    def text(self, name):
        """Return a file's text."""
        return self.read(name).decode()


def check(bundle, given, say):
    """Check all of it; raise `Bad` at the first bad thing."""
    keys = [read_key(line) for line in given or bundle.text("keys.txt").splitlines() if line.strip()]
    text, signatures = read_note(bundle.text("checkpoint.txt"))
    origin, size, root = read_checkpoint(text)
    good = signers(text, signatures, keys)
    if origin not in good:
        raise Bad("the checkpoint is not signed by the record's key")
    seen = ", ".join(sorted(set(good) - {origin})) or "nobody whose key is known"
    say(f"checkpoint of {origin}: {size:,} leaves, signed; witnessed by {seen}")
    check_manifest(bundle, keys, origin)
    decisions = {}
    numbers = [n[14:-6] for n in bundle.names() if n.startswith("conversations/") and n.endswith(".jsonl")]
    for number in numbers:
        decisions.update(check_conversation(bundle, number, (text, size, root), say))
    check_approvals(bundle, decisions, say)
    check_audit(bundle, size, root, say)
    return len(numbers)


def check_manifest(bundle, keys, origin):
    """Compare every file with what the record signed."""
    text, signatures = read_note(bundle.text("manifest.txt"))
    if origin not in signers(text, signatures, keys):
        raise Bad("manifest.txt is not signed by the record's key")
    first, *lines = text.splitlines()
    if first != "switchboard evidence bundle 1":
        raise Bad("manifest.txt is not a manifest")
    listed = {line[66:]: line[:64] for line in lines}
    for name in bundle.names():
        if name in ("manifest.txt", "verify.py"):  # the one that runs cannot vouch for itself
            continue
        if name not in listed:
            raise Bad(f"{name} was added")
        if hashlib.sha256(bundle.read(name)).hexdigest() != listed[name]:
            raise Bad(f"{name} was changed")
    for name in listed:
        bundle.read(name)


def check_conversation(bundle, number, signed, say):
    """Check a conversation's chain and its place in the tree; return what its events decided."""
    lines = io.StringIO(bundle.text(f"conversations/{number}.jsonl"), newline="\n")
    talk = CheckedConversation(json.loads(next(lines)))
    for line in lines:
        talk.take(json.loads(line))
    talk.end()
    seq, index, path, checkpoint = read_proof(bundle.text(f"proofs/{number}.tlog-proof"))
    text, size, root = signed
    if read_note(checkpoint)[0] != text:
        raise Bad(f"the proof of conversation {talk.key!r} belongs to another checkpoint")
    if root_by_path(leaf_of(talk.chain, seq, talk.hashes.get(seq)), index, size, path) != root:
        raise Bad(f"conversation {talk.key!r}, event {seq}: the signed tree has a different one in its place")
    later = f"; {talk.seq - seq} later ones are not signed yet" if talk.seq > seq else ""
    say(f"conversation {talk.key!r}: {seq} events match what was signed{later}")
    return talk.decisions


def check_links(bundle, size, root):
    """Check the links of the audit log and the leaves that they lead to; return each by its number."""
    linked = {}
    for proof in map(json.loads, bundle.text("proofs/audit.jsonl").splitlines()):
        prev = proof["prev"]
        for link_ in proof["links"]:
            seq, *rest, stated = link_
            prev = joined_hash("switchboard/2 audit", prev, seq, *rest)
            if prev != stated:
                raise Bad(f"audit entry {seq}: its hash does not match its contents and the previous entry")
            linked[seq] = link_
        leaf = leaf_of(hashlib.sha256(b"\0audit").hexdigest(), seq, prev)
        if root_by_path(leaf, proof["index"], size, [base64.b64decode(x) for x in proof["path"]]) != root:
            raise Bad(f"audit entry {seq}: the signed tree has a different one in its place")
    return linked


def check_audit(bundle, size, root, say):
    """Check each audit entry against its links, and these against the tree."""
    linked, counts = check_links(bundle, size, root), {"proved": 0, "masked": 0, "other": 0}
    for entry in map(json.loads, bundle.text("audit.jsonl").splitlines()):
        place = f"audit entry {entry['seq']}"
        plain = [entry[name] for name in ("seq", "at", "verb", "before", "after", "outcome", "digest", "hash")]
        words = [entry[name] for name in ("principal", "acting_as", "target", "reason", "correlation")]
        data = json.dumps(words, ensure_ascii=False, separators=(",", ":")).encode()
        if entry["seq"] in linked and linked[entry["seq"]] != plain:
            raise Bad(f"{place}: it differs from the one that was signed")
        if entry["salt"] and hashlib.sha256(salt_of(entry["salt"], place) + data).hexdigest() != entry["digest"]:
            raise Bad(f"{place}: its person, target or reason was changed")
        counts["other" if entry["seq"] not in linked else "proved" if entry["salt"] else "masked"] += 1
    say("{proved} audit entries match what was signed; {masked} have masked or erased text, so only that they exist, "
        "and when, is proved; {other} are of an older format or not signed yet".format(**counts))  # fmt: skip


def check_approvals(bundle, decisions, say):
    """Compare the list of approvals with the events that decided them."""
    approvals = json.loads(bundle.text("approvals.json"))
    for approval in approvals:
        if approval["status"] == "decided" and decisions.get(approval["id"]) != approval["decision"]:
            raise Bad(f"approval {approval['id']}: no event contains this decision")
    say(f"{len(approvals)} approvals match the decisions in the events")


def main(arguments):
    """Check the bundle beside this file, or the one that is named."""
    given, paths, words = [], [], iter(arguments)
    for word in words:
        given.append(next(words, "")) if word == "--key" else paths.append(word)
    path = Path(paths[0]) if paths else Path(__file__).resolve().parent
    try:
        count = check(Bundle(path), given, print)
    except Bad as error:
        print(f"BAD: {error}")
        return 1
    except (ValueError, KeyError, TypeError, IndexError, StopIteration, OSError, zipfile.BadZipFile) as error:
        print(f"BAD: the bundle cannot be read: {type(error).__name__}: {error}")
        return 1
    unchanged = f"OK: {count} conversation{'' if count == 1 else 's'}, nothing was changed"
    print(unchanged if count else "NOTHING PROVED: the bundle contains no conversation")
    if not given:
        print("The keys come from the bundle itself: compare keys.txt with the key you know, or pass it with --key")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
