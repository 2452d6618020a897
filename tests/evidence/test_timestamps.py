"""Time stamps of checkpoints (RFC 3161), by an authority that is `openssl ts`, which also checks them."""

import shutil
import subprocess
import zipfile
from functools import partial

import pytest

from conversations.core.errors import Invalid
from conversations.core.outbound_address import AllowList
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.evidence import bundle, checkpoints, state, timestamps, witnesses
from conversations.evidence.checkpoints import Signer
from conversations.evidence.verify_record import RecordCheck, Settings
from conversations.evidence.witness_settings import parse
from conversations.models import Checkpoint, Witnessed
from tests.support.answering import Answer, answering

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
]
LOOPBACK = AllowList.of(["127.0.0.1"])
CONFIG = """
[tsa]
default_tsa = here
[here]
serial = {home}/serial
signer_cert = {home}/tsa.pem
signer_key = {home}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
accuracy = secs:1
ordering = yes
"""


class Authority:
    """A time stamping authority in a folder."""

    def __init__(self, home):
        self.home = home
        (home / "serial").write_text("01\n")
        (home / "tsa.cnf").write_text(CONFIG.format(home=home))
        self.run(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "tsa.key",
            "-out", "tsa.pem", "-subj", "/CN=tsa.example", "-addext", "extendedKeyUsage=critical,timeStamping",
        )  # fmt: skip

    def run(self, *words):
        done = subprocess.run(["openssl", *words], cwd=self.home, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def answer(self, query):
        (self.home / "query").write_bytes(query)
        self.run("ts", "-reply", "-config", "tsa.cnf", "-queryfile", "query", "-out", "answer")
        return (self.home / "answer").read_bytes()

    def verify(self, token, text):
        command = ("ts", "-verify", "-in", str(token), "-token_in", "-data", str(text), "-CAfile", "tsa.pem")
        return b"OK" in self.run(*command)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def url(authority):
    """Where it answers."""

    def answer(request):
        is_query = request.headers["Content-Type"] == "application/timestamp-query"
        return Answer(200, authority.answer(request.body)) if is_query else Answer(415)

    with answering(answer) as address:
        yield f"timestamp:{address}/tsr"


@pytest.fixture
def signer(tmp_path):
    log.append([log.from_internal("tram", {"event": "operator.note", "text": "stop"}, SYSTEM)])
    made = Signer(tmp_path / "keys" / "k.json", "example.com/stamped")
    checkpoints.make(made)
    return made


def test_a_stamped_checkpoint_counts_as_witnessed_and_openssl_checks_the_stamp_of_a_bundle(
    authority, url, signer, tmp_path
):
    show = partial(witnesses.submit_all, [parse(url)], [], LOOPBACK)

    with bundle.write(signer, ["tram"], show=show) as made:
        zipfile.ZipFile(made).extractall(tmp_path / "b")

    stamps = tmp_path / "b" / "timestamps"
    assert state.current().words.endswith("witnessed by 1")
    assert "rfc3161" not in state.note()
    assert (stamps / "checkpoint-text.txt").read_text().startswith("example.com/stamped\n")
    assert authority.verify(stamps / "1.tst", stamps / "checkpoint-text.txt")
    assert RecordCheck(Settings(tmp_path, signer.path)).tree().ok


def test_a_stamp_of_another_checkpoint_is_found(url, signer, tmp_path):
    witnesses.submit_all([parse(url)], [], LOOPBACK)
    log.append([log.from_internal("tram", {"event": "operator.note", "text": "more"}, SYSTEM)])
    checkpoints.make(signer)

    Witnessed.objects.update(size=Checkpoint.objects.latest("size").size)

    assert (
        "its time stamp is for something other than checkpoint 2"
        in RecordCheck(Settings(tmp_path, signer.path)).tree().why
    )


def test_an_answer_of_something_else_is_refused(authority):
    answer = authority.answer(timestamps.query("a", 1 << 62))

    assert timestamps.read(timestamps.token_of(answer, "a", 1 << 62)).nonce == 1 << 62
    for text, nonce, words in (
        ("b", 1 << 62, "is for different data"),
        ("a", 1 << 62 | 1, "belongs to another request"),
    ):
        with pytest.raises(Invalid, match=words):
            timestamps.token_of(answer, text, nonce)


def test_no_damaged_answer_is_anything_but_refused_or_whole(authority):
    answer = authority.answer(timestamps.query("a", 1 << 62))

    for end in range(len(answer)):
        with pytest.raises(Invalid):
            timestamps.token_of(answer[:end], "a", 1 << 62)


@pytest.mark.parametrize("answer", [b"", b"0", b"<html>", bytes.fromhex("30053003020102"), b"\x30\x84\xff\xff\xff\xff"])
def test_what_is_no_stamp_is_refused(answer):
    with pytest.raises(Invalid):
        timestamps.token_of(answer, "a", 1)
