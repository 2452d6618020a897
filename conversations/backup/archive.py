"""The format of a backup file: a zip archive with one part per table and a manifest.

Each part has one line of JSON per row. The archive's comment ends with the SHA-256 of all bytes before it, so any
changed, missing or added byte is detected before anything is restored.
"""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from conversations.core.errors import Invalid

FORMAT = "switchboard-backup/1"
MANIFEST = "manifest.json"
COMMENT = b"switchboard-backup sha256:"
DIGITS = 64
CHUNK = 1 << 20  # bytes
FAST = 1  # compression level of zlib: twice as fast as the default, and the file is a tenth larger

Manifest = dict[str, Any]  # any JSON


class DigestingFile(io.RawIOBase):
    """A file that is written from start to end, and hashed on the way except for its last 64 bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest, self._end = file, hashlib.sha256(), b""

    def writable(self) -> bool:
        """Return True: writing is all it can do."""
        return True

    def write(self, data: Any) -> int:
        """Write the data, and hash the bytes that can no longer be among the last 64."""
        self._file.write(data)
        rest = self._end + bytes(data)
        self._digest.update(rest[:-DIGITS])
        self._end = rest[-DIGITS:]
        return len(data)

    def seal(self) -> str:
        """Replace the last 64 bytes by the digest, in hexadecimal, and return it."""
        digest = self._digest.hexdigest()
        self._file.flush()
        self._file.seek(-DIGITS, os.SEEK_END)
        self._file.write(digest.encode())
        self._file.flush()
        return digest


class ArchiveWriter:
    """Writes a backup: one part after the other, then the manifest."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = DigestingFile(file)
        self._zip = zipfile.ZipFile(cast(IO[bytes], self._file), "w", zipfile.ZIP_DEFLATED, compresslevel=FAST)
        self._zip.comment = COMMENT + b"0" * DIGITS

    def add(self, name: str, pieces: Iterator[bytes]) -> tuple[int, str]:
        """Write one part; return its size in bytes and its SHA-256."""
        size, digest = 0, hashlib.sha256()
        with self._zip.open(name, "w", force_zip64=True) as part:
            for piece in pieces:
                part.write(piece)
                digest.update(piece)
                size += len(piece)
        return size, digest.hexdigest()

    def finish(self, manifest: Manifest) -> str:
        """Write the manifest and close the archive; return the digest of the file."""
        text = json.dumps({"format": FORMAT, **manifest}, ensure_ascii=False, indent=1)
        self._zip.writestr(MANIFEST, text)
        self._zip.close()
        return self._file.seal()


class BackupArchive:
    """A backup file whose digest was checked."""

    def __init__(self, parts: zipfile.ZipFile, manifest: Manifest, digest: str) -> None:
        self._zip, self.manifest, self.digest = parts, manifest, digest

    @contextmanager
    def lines(self, part: Manifest) -> Iterator[Iterator[bytes]]:
        """Return an iterator over a part's lines. It raises Invalid at the end if they do not match the manifest."""
        with self._zip.open(part["name"]) as file:
            yield _checked_lines(file, part)


@contextmanager
def opened(path: Path) -> Iterator[BackupArchive]:
    """Check every byte of a backup and open it. Raises Invalid if it is unreadable, damaged, or of another format."""
    with _open(path) as file:
        digest = _require_undamaged(file, path)
        file.seek(0)
        try:
            with zipfile.ZipFile(file) as parts:
                manifest = json.loads(parts.read(MANIFEST))
                if manifest.get("format") != FORMAT:
                    raise Invalid(f"{path} has the format {manifest.get('format')!r}; this version reads {FORMAT}")
                yield BackupArchive(parts, manifest, digest)
        except (zipfile.BadZipFile, KeyError, ValueError) as error:
            raise Invalid(f"{path} is not a complete backup: {error}") from None


def is_backup(path: Path) -> bool:
    """Return whether a file ends like a backup. Its contents are not checked."""
    with path.open("rb") as file:
        return _written_digest(file) is not None


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}") from None


def _require_undamaged(file: IO[bytes], path: Path) -> str:
    expected = _written_digest(file)
    if expected is None:
        raise Invalid(f"{path} is not a backup, or its end is missing")
    file.seek(0)
    digest, left = hashlib.sha256(), path.stat().st_size - DIGITS
    while left > 0 and (chunk := file.read(min(CHUNK, left))):
        digest.update(chunk)
        left -= len(chunk)
    if digest.hexdigest().encode() != expected:
        raise Invalid(f"{path} is damaged: its contents do not match the SHA-256 at its end. Nothing was restored")
    return digest.hexdigest()


def _written_digest(file: IO[bytes]) -> bytes | None:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - len(COMMENT) - DIGITS))
    end = file.read()
    return end[-DIGITS:] if end.startswith(COMMENT) and len(end) == len(COMMENT) + DIGITS else None


def _checked_lines(file: IO[bytes], part: Manifest) -> Iterator[bytes]:
    digest = hashlib.sha256()
    for line in file:
        digest.update(line)
        yield line
    if digest.hexdigest() != part["sha256"]:
        raise Invalid(f"the part {part['name']} does not match the manifest")
