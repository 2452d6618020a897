"""Refuse options that a command would ignore. Called by commands before they do anything."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.core.management.base import CommandError


def require(needed: str, options: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise CommandError if an option of these names is set, which does something only beside `needed`."""
    if given := _set_options(options, names):
        raise CommandError(f"{', '.join(given)} {'needs' if len(given) == 1 else 'need'} {needed}")


def refuse_beside(option: str, options: Mapping[str, Any], names: Iterable[str]) -> None:
    """Raise CommandError if an option of these names is set, which `option` would ignore."""
    if given := _set_options(options, names):
        raise CommandError(f"{option} cannot be combined with {', '.join(given)}")


def _set_options(options: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Return those that are set as they are typed; names in capitals are positional."""
    spelled = {name: name if name.isupper() else f"--{name.replace('_', '-')}" for name in names}
    return [typed for name, typed in spelled.items() if options[name.lower()]]
