"""The Jinja2 environment of pages and fragments: autoescape on, a missing name is an error."""

from typing import Any

from django.templatetags.static import static
from django.urls import reverse
from jinja2 import Environment, StrictUndefined


def make(**options: Any) -> Environment:
    """Make it, as Django's template backend asks for it."""
    options["undefined"] = StrictUndefined
    environment = Environment(**options)
    environment.globals.update(static=static, url=reverse)
    return environment
