"""What a check of the whole record says, sentence by sentence. For the command `verify` and the audit page's check."""

from collections.abc import Iterator
from typing import NamedTuple

from conversations.evidence import state
from conversations.evidence.verify_record import RecordCheck


class Verdict(NamedTuple):
    """One sentence, and whether it is good news."""

    words: str
    is_ok: bool


def verdicts(check: RecordCheck, *, only_chains: bool = False) -> Iterator[Verdict]:
    """Check part after part, the chains first."""
    for singular, noun, part in (("audit entry", "audit entries", check.audit), ("event", "events", check.events)):
        report = part()
        intact = f"{report.count:,} {f'{singular} is' if report.count == 1 else f'{noun} are'} intact"
        before = f" ({report.count:,} before it are intact)" if report.count else ""
        fault = f"{noun}: {report.first_bad}: {report.why}{before}"
        yield Verdict(intact if report.ok else fault, report.ok)
    yield _of_tree(check)
    if not only_chains:
        report = check.state()
        right = "State and rights match the events and audit entries"
        yield Verdict(right if report.ok else f"state: {report.first_bad}: {report.why}", report.ok)


def _of_tree(check: RecordCheck) -> Verdict:
    signed, report = state.current(), check.tree()
    if not report.ok:
        return Verdict(f"signatures: {report.first_bad}: {report.why}", is_ok=False)
    if signed is None:
        return Verdict("The record has not been signed yet", is_ok=True)
    leaves = "leaf is" if check.size == 1 else "leaves are"
    return Verdict(f"{signed.words}: {check.size:,} {leaves} intact", is_ok=True)
