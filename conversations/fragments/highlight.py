"""Code in messages: pygments' tokens as nine classes of our own (static/css/components/code.css).

A lexer costs 10 to 20 µs a token, and several are quadratic over blank lines or long ones, so what is coloured is
bounded in words and signs, line length and runs of blanks: then the worst of our corpus stays under 20 ms. Java's
lexer is quadratic over plain words and left out.
"""

import re

from pygments.lexer import Lexer
from pygments.lexers.c_cpp import CLexer, CppLexer
from pygments.lexers.configs import TOMLLexer
from pygments.lexers.css import CssLexer
from pygments.lexers.data import JsonLexer, YamlLexer
from pygments.lexers.diff import DiffLexer
from pygments.lexers.go import GoLexer
from pygments.lexers.html import HtmlLexer
from pygments.lexers.javascript import JavascriptLexer, TypeScriptLexer
from pygments.lexers.python import PythonLexer
from pygments.lexers.rust import RustLexer
from pygments.lexers.shell import BashLexer
from pygments.lexers.sql import SqlLexer
from pygments.token import Token, _TokenType

from conversations.fragments.markup import escape

MAX_CODE = 3_000  # characters of one block
MAX_SIGNS = 900  # words and signs of one block, and of all blocks of a message

_SIGN = re.compile(r"\w+|[^\w\s]")
_UNFIT = re.compile(r"\n[ \t]*\n[ \t]*\n[ \t]*\n|[ \t]{81}|[^\n]{241}")  # quadratic in some lexer

_LEXERS: dict[str, Lexer] = {}
for _names, _lexer in {
    "python py python3": PythonLexer,
    "json jsonc": JsonLexer,
    "yaml yml": YamlLexer,
    "toml": TOMLLexer,
    "bash sh shell zsh": BashLexer,
    "javascript js jsx mjs": JavascriptLexer,
    "typescript ts tsx": TypeScriptLexer,
    "html xml svg": HtmlLexer,
    "css": CssLexer,
    "sql postgresql sqlite": SqlLexer,
    "diff patch": DiffLexer,
    "rust rs": RustLexer,
    "go golang": GoLexer,
    "c h": CLexer,
    "cpp c++ cc hpp": CppLexer,
}.items():
    _made = _lexer(stripnl=False, ensurenl=False)  # type: ignore[no-untyped-call]  # pygments has no types for it
    _LEXERS.update(dict.fromkeys(_names.split(), _made))

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
_known: dict[_TokenType, str] = {}


def signs(code: str) -> int:
    """Count the words and signs: about the tokens a lexer will find."""
    return len(_SIGN.findall(code))


def highlight(code: str, language: str) -> str:
    """Answer escaped HTML, with spans when the language is known and the code within the limits."""
    lexer = _LEXERS.get(language.lower())
    if lexer is None or len(code) > MAX_CODE or _UNFIT.search(code) or signs(code) > MAX_SIGNS:
        return escape(code)
    parts = []
    for token, text in lexer.get_tokens(code):
        name = _class(token)
        parts.append(f'<span class="{name}">{escape(text)}</span>' if name else escape(text))
    return "".join(parts)


def _class(token: _TokenType) -> str:
    if token not in _known:
        _known[token] = next((name for parent, name in _CLASSES if _is_a(token, parent)), "")
    return _known[token]


def _is_a(token: _TokenType, parent: _TokenType) -> bool:
    return token[: len(parent)] == parent
