"""What is personal in entries of the audit log: hashed as a salted digest, erased, and the chain stays whole."""

import json

import pytest

from conversations.access.audit import chain
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.core.principals import SYSTEM, user_principal
from conversations.core.write_transaction import write_transaction
from conversations.models import AuditEntry, AuditHead, Redaction
from conversations.redaction import audit_entries, journal, legal_holds, scope
from conversations.redaction.scope import RedactionScope
from tests.redaction.test_redact import everywhere, spoken
from tests.support.auditlog import in_format_1
from tests.support.cast import client_of

pytestmark = pytest.mark.django_db(transaction=True)
WORD = "Quokka-4712"


def entered(reason="", **more):
    with write_transaction():
        correlation = {"address": "192.0.2.7", "conversation": "erase-a", "query": f"about {WORD}"}
        return chain.add_entry(
            user_principal("ida"), "pause", "conversation:erase-a", reason=reason, correlation=correlation, **more
        )


def test_erased_words_are_in_no_table_and_the_chain_is_whole(team):
    entry, other = entered(f"asked by {WORD}"), entered("because of rain")

    assert audit_entries.erase(team["admin"], [entry.seq], "Article 17") == 1

    left = AuditEntry.objects.get(seq=entry.seq)
    assert (left.reason, json.loads(left.correlation)) == (chain.ERASED, {"conversation": "erase-a"})
    assert (left.principal, left.verb, left.target, left.hash) == (
        "user:ida", "pause", "conversation:erase-a", entry.hash
    )  # fmt: skip
    assert AuditEntry.objects.get(seq=other.seq).reason == "because of rain"
    assert chain.verify().ok
    with pytest.raises(Conflict, match="already erased"):
        audit_entries.erase(team["admin"], [entry.seq], "Article 17")


@pytest.mark.parametrize("column", ["principal", "acting_as", "target", "reason", "correlation"])
@pytest.mark.parametrize("is_erased", [False, True], ids=["whole", "erased"])
def test_a_changed_personal_column_is_found(team, column, is_erased):
    entry = entered("because")
    entered("later")
    if is_erased:
        audit_entries.erase(team["admin"], [entry.seq], "Article 17")

    AuditEntry.objects.filter(seq=entry.seq).update(**{column: "user:mallory"})

    assert chain.verify().first_bad == f"audit entry {entry.seq}"


def test_words_that_nobody_erased_by_an_entry_are_missed():
    entry = entered("because")
    entered("later")

    AuditEntry.objects.filter(seq=entry.seq).update(reason="", correlation="", salt=None)

    assert "text is missing, and no later entry records its erasure" in chain.verify().why


def test_the_digest_cannot_be_taken_away_nor_an_entry_of_format_1_given_one():
    first, second = entered("because"), entered("later")
    in_format_1(upto=first.seq)
    assert chain.verify().ok

    AuditEntry.objects.filter(seq=first.seq).update(salt=b"s" * 16)
    assert chain.verify().first_bad == f"audit entry {first.seq}"
    AuditEntry.objects.filter(seq=first.seq).update(salt=None)
    AuditEntry.objects.filter(seq=second.seq).update(salt=None, digest="")
    assert chain.verify().first_bad == f"audit entry {second.seq}"


def test_what_was_hashed_in_the_clear_is_not_erased(team):
    entry = entered("because")
    in_format_1(upto=entry.seq)

    with pytest.raises(Conflict, match="an older format that cannot be"):
        audit_entries.erase(team["admin"], [entry.seq], "Article 17")

    assert chain.verify().ok


def test_only_an_admin_erases_and_a_hold_keeps_what_the_log_says_of_a_conversation(team):
    spoken("erase-a", "hello")
    entry = entered("because")
    hold = legal_holds.place(team["admin"], "erase-a", "a lawsuit")

    with pytest.raises(NotAllowed):
        audit_entries.erase(team["auditor"], [entry.seq], "mine")
    with pytest.raises(Conflict, match="on legal hold"):
        audit_entries.erase(team["admin"], [entry.seq], "Article 17")
    with pytest.raises(NotFound):
        audit_entries.erase(team["admin"], [9_999], "Article 17")
    for wrong in ([], range(1, audit_entries.MAX_ENTRIES + 2)):
        with pytest.raises(Invalid):
            audit_entries.erase(team["admin"], wrong, "Article 17")
    legal_holds.release(team["admin"], hold.pk, "it is over")

    assert audit_entries.erase(team["admin"], [entry.seq], "Article 17") == 1


def test_many_entries_are_named_by_several_and_each_counts(team):
    seqs = [entered(f"asked by {WORD} {n}").seq for n in range(audit_entries.PAGE * 2 + 1)]

    audit_entries.erase(team["admin"], seqs, "Article 17")

    assert AuditEntry.objects.filter(verb=chain.ERASE, outcome="done").count() == 3
    assert chain.verify().ok
    assert everywhere(WORD) == []


def test_everything_about_a_person_has_their_addresses_and_the_reasons_that_name_them(team):
    entered(f"asked by {WORD.upper()}"), entered()
    with write_transaction():
        chain.add_entry(SYSTEM, "pause", "record", reason=f"{WORD} called", correlation={"address": "192.0.2.9"})
        chain.add_entry(SYSTEM, "pause", "record", reason="nothing of it", correlation={"address": "192.0.2.8"})
    what = RedactionScope(person="ida", words=[WORD])

    seqs = scope.preview_entries(what)
    outcome = scope.carry_out(team["admin"], what, "Article 17")

    assert len(seqs) == outcome.entries == 3
    for word in (WORD, WORD.upper(), "192.0.2.7", "192.0.2.9"):
        assert everywhere(word) == []
    assert everywhere("192.0.2.8")
    assert everywhere("nothing of it")
    assert scope.preview_entries(what) == []
    assert chain.verify().ok


def test_an_older_copy_has_the_same_entries_erased_by_the_journal(team, tmp_path):
    entry = entered(f"asked by {WORD}")
    before = AuditEntry.objects.get(seq=entry.seq)
    head = AuditHead.objects.get()
    audit_entries.erase(team["admin"], [entry.seq], "Article 17")
    (made,) = journal.update(tmp_path)
    assert WORD not in (tmp_path / journal.NAME).read_text()

    AuditEntry.objects.filter(seq__gt=head.seq).delete()  # the copy, as it was
    AuditHead.objects.update(seq=head.seq, hash=head.hash)
    Redaction.objects.all().delete()
    before.save()
    assert chain.verify().ok
    assert everywhere(WORD)

    assert journal.apply(tmp_path / journal.NAME) == 1
    assert everywhere(WORD) == []
    assert chain.verify().ok
    assert Redaction.objects.get().mark == made.mark
    assert journal.apply(tmp_path / journal.NAME) == 0


def test_the_page_and_the_api_show_first_and_then_erase(team):
    admin_client = client_of(team["admin"])
    entry, other = entered(f"asked by {WORD}"), entered("because")
    page = admin_client.get("/redaction/", {"entries": str(entry.seq)}).content.decode()
    assert "1 entry of the audit log would be erased" in page
    fields = {"entries": str(entry.seq), "reason": "Article 17", "do": "redact"}
    done = admin_client.post("/redaction/", fields, follow=True).content.decode()
    assert "1 entry of the audit log erased" in done
    assert "Audit log" in done

    body = {"entries": [other.seq]}
    preview = admin_client.post("/api/v1/redactions/preview", body, content_type="application/json").json()
    assert preview == {"items": [], "audit_entries": [other.seq], "ids": []}
    made = admin_client.post("/api/v1/redactions", body | {"reason": "x"}, content_type="application/json")
    assert (made.status_code, made.json()["audit_entries"]) == (201, 1)
    assert everywhere(WORD) == []
    assert chain.verify().ok
