"""The only place that declares a computed text to be HTML (`Markup` elsewhere has a literal). Everything else passes
text to templates, which escape it."""

import markupsafe
from markupsafe import Markup


def safe(html: str) -> Markup:
    """Mark HTML that this package built as safe: all foreign text in it went through `escape`."""
    return Markup(html)


def escape(text: str) -> str:
    """Return the text with `& < > " '` as entities, as a plain str."""
    return str(markupsafe.escape(str(text)))
