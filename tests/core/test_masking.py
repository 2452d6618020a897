"""Keys and tokens in text are covered; ordinary words are not."""

import json
import random
import re

import pytest

from conversations.core import secret_masking
from conversations.core.secret_masking import (
    MASK,
    has_secret,
    mask,
    mask_json,
    mask_json_text,
    may_hold,
    may_name_secret,
    names_secret,
)
from tests.support.growth import ratio

INDEX_TOKEN = "py" + "pi-"  # apart, as no file may name that index


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
        ("use sb_3q2-7wAAABJ_kLmN0pQrStUvWxYz0123456789abcde now", "3q2-7wAAABJ_kLmN0pQrStUvWxYz0123456789abcde"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY", "wJalrXUtnFEMI/K7MDENG"),
        ("SG.ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf09kqeF8tAmbihYzrnopKc", "TwL2iGABf9DHoTf09kqeF8tAmbihYzrnopKc"),
        ("npm_0123456789abcdefghijABCDEFGHIJ012345", "0123456789abcdefghij"),
        ("AccountName=a;AccountKey=Zm9vYmFyYmF6cXV4Zm9v==;Endpoint=b", "Zm9vYmFyYmF6cXV4Zm9v"),
        ("dop_v1_0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef"),
        ("bot 123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc", "AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"),
        ("Server=db;Uid=sa;Pwd=Tr0ub4dor;", "Tr0ub4dor"),
        (INDEX_TOKEN + "AgEIcHlwaS5vcmcCJDAwMDAwMDAw", "AgEIcHlwaS5vcmcCJDAwMDAwMDAw"),
        ("Cookie: session=0a1b2c3d; theme=dark", "0a1b2c3d"),
        ('{"Set-Cookie": "sid=0a1b2c3d; HttpOnly"}', "0a1b2c3d"),
        ("https://a.blob.example/c?sv=1&sig=Zm9vYmFy%2Fxyz", "Zm9vYmFy"),
        ("https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXX", "B00000000/XXXXXXXX"),
        ("ASIAIOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"),
        ("xapp-1-A0123-4567-89ab", "A0123-4567-89ab"),
        ("hvs.CAESIJ0123456789abcdefghij", "CAESIJ0123456789abcdefghij"),
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
        "Cookie: a chocolate one",
        "PWD=/srv/project",
        "sb_settings and sb_short",
        "Asia and the sg. of an account, key to the map",
        "the bearer of this letter, and bearer documents.",
        "",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert mask(text) == text


@pytest.mark.thorough
def test_a_text_is_passed_over_only_where_no_pattern_could_cover_anything() -> None:
    """The look before the patterns must let nothing through, as a text and inside of JSON."""
    pieces = [*"-_.:=/@?& \n\"'\\{}tſK", "sk", "PK", "rk", "ghp", "gho", "ghs", "github_pat", "xoxb", "glpat", "hf"]
    pieces += [
        "sb_",
        "npm_",
        f"{INDEX_TOKEN}Age",
        "dop_v1_",
        "hvs.",
        "shpat_",
        "lin_api_",
        "sbp_",
        "dckr_pat_",
        "GOCSPX-",
        "ya29.",
    ]
    pieces += [
        "SG.",
        "1234567:AA",
        "hooks.slack.com/services/",
        "AGE-SECRET-KEY-1",
        "ASIA",
        "&sig=",
        "Cookie: a=",
        "pwd",
    ]
    pieces += ["account_key", "xapp"]
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
        for pattern, replacement in secret_masking._SECRETS:
            whole = pattern.sub(replacement, whole)
        covered += whole != text

        assert mask(text) == whole, text
        assert whole == text or may_hold(json.dumps({"said": json.dumps(text)})), text
    assert covered > 3_000


SECRET_FIELDS = (
    "api_key", "token", "auth_token", "x-api-key", "passphrase", "accessToken", "clientSecret", "dbPassword", "apiKey",
    "APIKey", "X-Auth-Token", "oauth2Token", "userPasswordOld",
)  # fmt: skip
OTHER_FIELDS = ("description", "keyboard", "tokens", "maxTokens", "tokenizer", "Tokenizer", "secretary", "keyOfMap", "")


def test_fields_for_secrets_are_known_by_name() -> None:
    assert [name for name in (*SECRET_FIELDS, *OTHER_FIELDS) if names_secret(name)] == list(SECRET_FIELDS)


@pytest.mark.parametrize(
    "name", ["apikey", "account-key", "secret", "password", "passwd", "passphrase", "pwd", "token"]
)
@pytest.mark.parametrize("letters", ["", "\u017f", "\u212a", "\u0130", "\u0131"])
def test_a_name_of_a_secret_is_seen_in_every_spelling_that_the_expression_takes(name: str, letters: str) -> None:
    for spelled in (name, "credential", "authorization"):
        for letter in letters:
            spelled = "".join(letter if re.fullmatch(letter, own, re.IGNORECASE) else own for own in spelled)
        for text in (spelled, spelled.upper(), f'{{"my_{spelled}": 1}}'):
            assert may_name_secret(text) == bool(secret_masking._NAMED.search(text))
        assert may_name_secret(spelled)


def test_a_text_in_a_field_in_camel_case_is_covered() -> None:
    assert mask_json({"auth": {"accessToken": "hunter2", "expiresIn": 60}}) == {
        "auth": {"accessToken": MASK, "expiresIn": 60}
    }


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ({"tokens": ["one", "two"]}, {"tokens": [MASK, MASK]}),
        ({"token": ["one", {"name": "two"}]}, {"token": [MASK, {"name": MASK}]}),
        ({"password": 12345}, {"password": MASK}),
        ({"dbPassword": 1.5, "pwd": True, "secret": None}, {"dbPassword": MASK, "pwd": True, "secret": None}),
        ({"credentials": {"a": "x", "of": [{"pin": 7}]}}, {"credentials": {"a": MASK, "of": [{"pin": MASK}]}}),
        ({"apiKeys": {"github": "x"}}, {"apiKeys": {"github": MASK}}),
        ({"properties": {"password": "hunter2"}}, {"properties": {"password": MASK}}),
        ({"properties": {"credentials": {"user": "x"}}}, {"properties": {"credentials": {"user": MASK}}}),
    ],
)
def test_what_is_below_the_name_of_a_secret_is_covered(value: object, masked: object) -> None:
    assert mask_json(value) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ('{"password": {"old": "tulip", "n": 7}}', '{"password": {"old": "•••", "n": "•••"}}'),
        ('{"api_key": 12345, "q": 1}', '{"api_key": "•••", "q": 1}'),
        ('{"login": {"apiKeys": ["one", {"of": 2.5}]}}', '{"login": {"apiKeys": ["•••", {"of": "•••"}]}}'),
        ('{"credentials": {"user": "\\ud83d", "é": "x"}}', '{"credentials": {"user": "•••", "\\u00e9": "•••"}}'),
        ('[{"tokens": ["one"]}]', '[{"tokens": ["•••"]}]'),
    ],
)
def test_what_is_below_the_name_of_a_secret_is_covered_in_json_that_is_a_text(text: str, masked: str) -> None:
    assert json.loads(mask_json_text(text)) == json.loads(masked)
    assert mask_json({"arguments": text}) == {"arguments": mask_json_text(text)}
    assert mask_json_text(mask_json_text(text)) == mask_json_text(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"password":"",  "token_count": 3}', '{"max_tokens": 4096, "tokens": {"input": 5}}', '{"key": {"a": 1.10}}',
        '{"parameters": {"properties": {"password": {"type": "string"}}}}', '{"password": {"old": "tu', "12345", "null",
        '{"password_policy": {"least": 8}}',
    ],
)  # fmt: skip
def test_other_json_that_is_a_text_stays_as_it_is(text: str) -> None:
    assert mask_json_text(text) == text


@pytest.mark.parametrize("text", ["password=tulips and sk-abcdefgh", '{"secret": ' + "[" * 5_000, '{"token": "tulip'])
def test_a_text_that_is_no_json_is_covered_as_any_text(text: str) -> None:
    assert mask_json_text(text) == mask(text) != text


@pytest.mark.parametrize(
    "value",
    [
        {"input_tokens": 5, "max_tokens": 4096, "token_count": 3, "maxOutputTokens": "4096", "tokens": 7},
        {"tokens": {"input": 5, "output": [7]}, "input_tokens_details": {"cached_tokens": 1}},
        {"password_length": 12, "token_expires_in": 60, "password_policy": {"hint": "long", "least": 8}},
        {"properties": {"password": {"type": "string"}, "token": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
        {"$defs": {"Credentials": {"type": "object", "properties": {"api_key": {"description": "A key."}}}}},
    ],
)
def test_counts_and_schemas_stay(value: object) -> None:
    assert mask_json(value) == value


@pytest.mark.thorough
@pytest.mark.parametrize(
    "shape",
    [
        "a", "-a", "eyJ", "-----BEGIN PRIVATE KEY-----", "api_key", "token: bearer ", "cookie: ", "cookie: a=b;\n",
        "SG.|a.", "123456:AA", "pwd=",
    ],
)  # fmt: skip
def test_the_time_of_masking_grows_as_the_text_does(shape: str) -> None:
    head, _, part = shape.rpartition("|")
    text = head + part * (1_000_000 // len(part))

    assert ratio(lambda: mask(text), lambda: mask(text[: len(text) // 8]), below=12) < 12
