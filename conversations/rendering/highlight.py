"""Highlight code in messages: pygments' tokens as nine classes of our own (static/css/components/code.css).

A lexer takes 10 to 20 µs per token, and several are quadratic in blank lines or long ones, so highlighting is limited
by words and signs, line length and runs of blanks: the worst of our corpus then stays under 20 ms. Java's lexer is
quadratic in plain words and left out.
"""

import re
from functools import cache
from importlib import import_module

from pygments.lexer import Lexer
from pygments.token import Token, _TokenType

from conversations.core.html_escape import escape

MAX_CODE = 3_000  # characters of one block
MAX_SIGNS = 900  # words and signs of one block, and of all blocks of a message

_SIGN = re.compile(r"\w+|[^\w\s]")
_UNFIT = re.compile(r"\n[ \t]*\n[ \t]*\n[ \t]*\n|[ \t]{81}|[^\n]{241}")  # quadratic in some lexer

_PLACES = {  # a language's names: where its lexer is; loaded when first needed, since all cost half a second at start
    "python py python3": "python:PythonLexer",
    "json jsonc": "data:JsonLexer",
    "yaml yml": "data:YamlLexer",
    "toml": "configs:TOMLLexer",
    "bash sh shell zsh": "shell:BashLexer",
    "javascript js jsx mjs": "javascript:JavascriptLexer",
    "typescript ts tsx": "javascript:TypeScriptLexer",
    "html xml svg": "html:HtmlLexer",
    "css": "css:CssLexer",
    "sql postgresql sqlite": "sql:SqlLexer",
    "diff patch": "diff:DiffLexer",
    "rust rs": "rust:RustLexer",
    "go golang": "go:GoLexer",
    "c h": "c_cpp:CLexer",
    "cpp c++ cc hpp": "c_cpp:CppLexer",
}
_LEXERS = {name: place for names, place in _PLACES.items() for name in names.split()}

_CLASSES = (  # the first that holds the token
    (Token.Comment, "tok-comment"),
    (Token.Keyword, "tok-keyword"),
    (Token.Literal.Number, "tok-number"),
    (Token.Literal, "tok-string"),
    (Token.Name.Tag, "tok-keyword"),
    (Token.Name.Function, "tok-name"),
    (Token.Name.Class, "tok-name"),
    (Token.Name.Attribute, "tok-name"),
    (Token.Name.Decorator, "tok-name"),
    (Token.Name.Builtin, "tok-builtin"),
    (Token.Operator.Word, "tok-keyword"),
    (Token.Generic.Deleted, "tok-deleted"),
    (Token.Generic.Inserted, "tok-inserted"),
    (Token.Generic.Heading, "tok-comment"),
    (Token.Generic.Subheading, "tok-comment"),
)
CLASSES = frozenset(name for _, name in _CLASSES)
_class_names: dict[_TokenType, str] = {}


def signs(code: str) -> int:
    """Count the words and signs, which is about the number of tokens."""
    return len(_SIGN.findall(code))


def highlight(code: str, language: str) -> str:
    """Return escaped HTML, with spans if the language is known and the code within the limits."""
    lexer_path = _LEXERS.get(language.lower())
    if lexer_path is None or len(code) > MAX_CODE or _UNFIT.search(code) or signs(code) > MAX_SIGNS:
        return escape(code)
    parts = []
    for token, text in _lexer(lexer_path).get_tokens(code):
        name = _class(token)
        parts.append(f'<span class="{name}">{escape(text)}</span>' if name else escape(text))
    return "".join(parts)


@cache
def _lexer(lexer_path: str) -> Lexer:
    module, _, name = lexer_path.partition(":")
    lexer: Lexer = getattr(import_module(f"pygments.lexers.{module}"), name)(stripnl=False, ensurenl=False)
    return lexer


def _class(token: _TokenType) -> str:
    if token not in _class_names:
        _class_names[token] = next((name for parent, name in _CLASSES if _is_a(token, parent)), "")
    return _class_names[token]


def _is_a(token: _TokenType, parent: _TokenType) -> bool:
    return token[: len(parent)] == parent
