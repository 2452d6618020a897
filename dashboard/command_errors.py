"""Explain a disk or database error of a command, with what to do. Called by `cli` and `serve`."""

import errno
import sqlite3
import sys

from django.db import DatabaseError, InterfaceError

from conversations.core.errors import SwitchboardError
from dashboard.config import load

PLACE = "or set SWITCHBOARD_DATA_DIR to another directory"
NO_SPACE = f"Free disk space, {PLACE}"
NOT_WRITABLE = f"Make it readable and writable for the current user, {PLACE}"
NO_DIRECTORY = f"Create a directory there, {PLACE}"
ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), NO_SPACE),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), NOT_WRITABLE),
    **dict.fromkeys((errno.ENOTDIR, errno.EEXIST, errno.EISDIR), NO_DIRECTORY),
    **dict.fromkeys((errno.ENAMETOOLONG, errno.ELOOP), f"Use another path, {PLACE}"),
    errno.EIO: f"Check the disk, {PLACE}",
}
ADVICE_OF_SQLITE = {
    sqlite3.SQLITE_FULL: NO_SPACE,
    sqlite3.SQLITE_IOERR: f"Check the disk: is it full? {NO_SPACE}",
    sqlite3.SQLITE_READONLY: NOT_WRITABLE,
    sqlite3.SQLITE_PERM: NOT_WRITABLE,
    sqlite3.SQLITE_CANTOPEN: f"Make sure the current user may write to its directory, {PLACE}",
    sqlite3.SQLITE_BUSY: "Another process is using it: try again when that process has ended",
}


def sentence(error: Exception) -> str:
    """Return what is wrong, where and what to do; empty for what is a bug of the program."""
    if isinstance(error, SwitchboardError) and isinstance(error.__cause__, Exception):
        return sentence(error.__cause__)
    if isinstance(error, OSError):
        return _of_disk(error)
    if isinstance(error, DatabaseError | InterfaceError):
        return _of_database(error)
    if isinstance(error, UnicodeEncodeError):
        return _of_arguments()
    return ""


def _of_arguments() -> str:
    """Name the argument that is not text: it came in an encoding other than UTF-8."""
    no_text = (argument for argument in sys.argv[1:] if any("\ud800" <= char <= "\udfff" for char in argument))
    return next((f"{argument!a} must be UTF-8 text." for argument in no_text), "")


def _of_disk(error: OSError) -> str:
    advice = ADVICE.get(error.errno or 0, "")
    path = error.filename if isinstance(error.filename, str) else load().data_dir
    return advice and f"{path}: {error.strerror}. {advice}."


def _of_database(error: Exception) -> str:
    from conversations.core import sqlite_integrity  # once settings have loaded: without them no database was asked
    from conversations.core.db_threads import is_damage, is_unavailable

    reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
    if is_damage(error):
        return sqlite_integrity.damaged(reason)
    if not is_unavailable(error):
        return ""
    code = getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF
    advice = ADVICE_OF_SQLITE.get(code, "Fix this and try again")
    return f"The database {sqlite_integrity.place()} cannot be used: {reason}. {advice}."
