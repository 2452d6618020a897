"""Keys and tokens in text are covered; ordinary words are not."""

import json
import random
import time

import pytest

from conversations import masking
from conversations.masking import MASK, has_secret, mask, may_hold, names_secret


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("key sk-proj-abcdefghijklmnop1234 here", "abcdefghijklmnop1234"),
        ("Authorization: Bearer abcDEF123456.xyz", "abcDEF123456"),
        ("authorization: basic dXNlcjpwYXNzd29yZDEyMw==", "dXNlcjpwYXNzd29yZDEyMw"),
        ('{"api_key": "0123456789"}', "0123456789"),
        ('{\\"api_key\\": \\"0123456789\\"}', "0123456789"),
        ("OPENAI_API_KEY=abcd1234efgh", "abcd1234efgh"),
        ("password: hunter2hunter2", "hunter2hunter2"),
        ("postgresql://user:pa55word@host/db", "pa55word"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefg", "eyJzdWIiOiIxMjM0In0"),
        ("ghp_0123456789abcdefABCDEF", "0123456789abcdefABCDEF"),
        ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"),
        ("{'Authorization': 'Bearer onlyletters'}", "onlyletters"),
        ("GET /sign-in/link/?t=c2VjcmV0LWxpbms failed", "c2VjcmV0LWxpbms"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
    ],
)
def test_a_secret_is_covered(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in mask(text)
    assert MASK in mask(text)
    assert has_secret(text)
    assert mask(mask(text)) == mask(text)


@pytest.mark.parametrize(
    "text",
    [
        "A pothole on Mill Road 5",
        "I lost my password yesterday",
        "the token economy",
        "http://host:80/a?b=c",
        "sk-8",
        "the bearer of this letter, and bearer documents.",
        "",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert mask(text) == text


def test_a_text_is_passed_over_only_where_no_pattern_could_cover_anything() -> None:
    """The look before the patterns must let nothing through, as a text and inside of JSON."""
    pieces = [*"-_.:=/@?& \n\"'\\{}tſK", "sk", "PK", "rk", "ghp", "gho", "ghs", "github_pat", "xoxb", "glpat", "hf"]
    pieces += ["AKIA", "AIza", "eyJ", "-----BEGIN PRIVATE KEY-----", "bearer", "Basic", "://", "?t=", "&t="]
    pieces += [
        "switchboard_csrf=",
        "api_key",
        "secret-key",
        "privatekey",
        "passwd",
        "password",
        "token",
        "authorization",
    ]
    pieces += ["0123456789ABCDEF", "abcdefghijklmnopqrstuvwxyz0123456789", "user", "a word"]
    choose, covered = random.Random(7), 0
    for _ in range(30_000):
        text = "".join(choose.choices(pieces, k=choose.randint(2, 7)))
        whole = text
        for pattern, kept in masking._SECRETS:
            whole = pattern.sub(kept, whole)
        covered += whole != text

        assert mask(text) == whole, text
        assert whole == text or may_hold(json.dumps({"said": json.dumps(text)})), text
    assert covered > 3_000


def test_fields_for_secrets_are_known_by_name() -> None:
    assert [n for n in ("api_key", "token", "auth_token", "description", "keyboard", "tokens") if names_secret(n)] == [
        "api_key",
        "token",
        "auth_token",
    ]


def test_masking_is_quick_whatever_comes() -> None:
    started = time.process_time()

    for text in (
        "a" * 1_000_000,
        "-a" * 500_000,
        "eyJ" * 300_000,
        "-----BEGIN PRIVATE KEY-----" * 30_000,
        "api_key" * 99_999,
        "token: bearer " * 80_000,
    ):
        mask(text)

    assert time.process_time() - started < 5
