"""An audit log with everything in it that can be filtered by, and what a look at every entry finds."""

import json
import random

from conversations.access.audit import chain
from conversations.access.audit.listing.filters import AuditFilters
from conversations.models import AuditEntry, AuditHead

BEGAN = 1_750_000_000_000_000  # µs
STEP_US = 60_000_000  # between two entries, about
PEOPLE = ("user:maria", "user:otto", "token:robot", "system", "agent:Desk", "token:relay")
VERBS = ("decide", "speak_as", "sign_in", "set_roles", "pause")
KEYS = ("th-1", "th-12", "th-2", 'quoted "x"', "müll")
REASONS = (
    "", "No receipt, ask for the ticket number", "STRASSE or Straße", "Überprüft", "receipt came", "=HYPERLINK()",
    "50 % of _it\\", "password=hunter2hunter2",
)  # fmt: skip


def record(count: int, seed: int = 5) -> None:
    """Enter so many, a minute apart or so, as one chain."""
    dice = random.Random(seed)
    head = AuditHead.objects.filter(id=1).first() or AuditHead(hash=chain.FIRST)
    seq, prev, made = head.seq, head.hash, []
    for _ in range(count):
        seq += 1
        entry = _drawn(dice, seq)
        entry.prev_hash = prev
        entry.hash = prev = chain.link(prev, entry)
        made.append(entry)
    AuditEntry.objects.bulk_create(made)
    for entry in made:
        chain._note_time(entry)
    AuditHead.objects.update_or_create(id=1, defaults={"seq": seq, "hash": prev})


def _drawn(dice: random.Random, seq: int) -> AuditEntry:
    key = dice.choice(KEYS)
    correlation = {"request": f"r{seq}", "text": '"conversation":"th-1"'}  # a quoted one is none
    if dice.random() < 0.3:
        correlation["conversation"] = key
    targets = (f"conversation:{key}", "approval:01JD", f"approval:{seq}", "user:maria", "audit.csv")
    return AuditEntry(
        seq=seq,
        at=BEGAN + seq * STEP_US + dice.randint(-STEP_US, STEP_US),
        principal=dice.choice(PEOPLE if seq % 50 else ("user:rare",)),
        acting_as=dice.choice(("", "", "agent:Desk", "agent:Desktop")),
        verb=dice.choice(VERBS),
        target=dice.choice(targets),
        reason=dice.choice(REASONS),
        outcome=dice.choice(("done", "done", "refused")),
        correlation=json.dumps(correlation, ensure_ascii=False, sort_keys=True, separators=(",", ":")),
    )


def drawn_filters(dice: random.Random) -> AuditFilters:
    """Draw one to four filters, with values that some entries have and some that none has."""
    count = AuditHead.objects.get(id=1).seq
    ends = sorted(BEGAN + dice.randint(-5, count + 5) * STEP_US for _ in range(2))
    values = {
        "who": dice.choice((("user:maria",), ("user:rare",), ("user:rare", "system"), ("token:*",), ("user:gone",))),
        "acting_as": dice.choice((("agent:Desk",), ("agent:Desk*",), ("*",))),
        "verb": dice.choice((("decide",), ("decide", "pause"), ("s*",))),
        "outcome": dice.choice(("done", "refused")),
        "target": dice.choice(("approval:01JD", "approval:*", "conversation:th-1", "conversation:th-1*", "audit.*")),
        "conversation": dice.choice(("th-1", "th-1*", 'quoted "x"', "müll", "nowhere", 'quoted "*')),
        "q": dice.choice(("receipt", "RECEIPT ask", "strasse", "überprüft", "% _it\\", "never")),
        "since": ends[0],
        "until": ends[1],
    }
    chosen = dice.sample(sorted(values), dice.choice((1, 1, 2, 2, 3, 4)))
    return AuditFilters(**{name: values[name] for name in chosen})  # type: ignore[arg-type]  # each value is its filter's


def brute(filters: AuditFilters) -> list[int]:
    """Look at every entry; return those that pass, newest first."""
    return [entry.seq for entry in AuditEntry.objects.order_by("-seq") if _passes(entry, filters)]


def _passes(entry: AuditEntry, filters: AuditFilters) -> bool:
    body = json.loads(entry.correlation).get("conversation")
    about = filters.conversation
    return (
        _any(entry.principal, filters.who)
        and _any(entry.acting_as, filters.acting_as)
        and _any(entry.verb, filters.verb)
        and filters.outcome in ("", entry.outcome)
        and (not filters.target or _is(entry.target, filters.target))
        and (not about or _is(entry.target, f"conversation:{about}") or (body is not None and _is(body, about)))
        and all(word in entry.reason.casefold() for word in filters.q.casefold().split())
        and (filters.since is None or entry.at >= filters.since)
        and (filters.until is None or entry.at <= filters.until)
    )


def _any(value: str, wanted: tuple[str, ...]) -> bool:
    return not wanted or any(_is(value, value_wanted) for value_wanted in wanted)


def _is(value: str, wanted: str) -> bool:
    if wanted.endswith("*"):
        return bool(value) and value.startswith(wanted[:-1])
    return value == wanted


def in_format_1(*, upto):
    """Chain entries up to one as releases before format 2 did, and those after it as now."""
    prev = chain.FIRST
    for entry in AuditEntry.objects.order_by("seq"):
        if entry.seq <= upto:
            entry.salt, entry.digest = None, ""
        entry.prev_hash = prev
        prev = entry.hash = chain.link(prev, entry)
        entry.save()
    AuditHead.objects.update(hash=prev)
