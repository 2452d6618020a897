"""Keys and tokens in text are covered; ordinary words are not."""

import time

import pytest

from conversations.masking import MASK, has_secret, mask, names_secret


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
