"""The file of a backup: a zip of parts and a manifest, whose comment is the SHA-256 of all bytes before its digits.

Parts are lines of JSON, one a row. Any changed, missing or added byte is noticed before anything is read.
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
FAST = 1  # zlib's level: twice as fast as its default, a tenth larger

Manifest = dict[str, Any]  # any JSON


class DigestingFile(io.RawIOBase):
    """A file that is written once through and hashed as it is, all but its last 64 bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest, self._end = file, hashlib.sha256(), b""

    def writable(self) -> bool:
        """Return True; it can do nothing else."""
        return True

    def write(self, data: Any) -> int:
        """Write, and hash what can no longer be among the last bytes."""
        self._file.write(data)
        rest = self._end + bytes(data)
        self._digest.update(rest[:-DIGITS])
        self._end = rest[-DIGITS:]
        return len(data)

    def seal(self) -> str:
        """Write the digest in place of the last bytes; return it."""
        digest = self._digest.hexdigest()
        self._file.flush()
        self._file.seek(-DIGITS, os.SEEK_END)
        self._file.write(digest.encode())
        self._file.flush()
        return digest


class ArchiveWriter:
    """A backup on its way: parts one after the other, the manifest last."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = DigestingFile(file)
        self._zip = zipfile.ZipFile(cast(IO[bytes], self._file), "w", zipfile.ZIP_DEFLATED, compresslevel=FAST)
        self._zip.comment = COMMENT + b"0" * DIGITS

    def add(self, name: str, pieces: Iterator[bytes]) -> tuple[int, str]:
        """Write one part; return its bytes and their SHA-256."""
        size, digest = 0, hashlib.sha256()
        with self._zip.open(name, "w", force_zip64=True) as part:
            for piece in pieces:
                part.write(piece)
                digest.update(piece)
                size += len(piece)
        return size, digest.hexdigest()

    def finish(self, manifest: Manifest) -> str:
        """Write the manifest and close; return the file's digest."""
        text = json.dumps({"format": FORMAT, **manifest}, ensure_ascii=False, indent=1)
        self._zip.writestr(MANIFEST, text)
        self._zip.close()
        return self._file.seal()


class BackupArchive:
    """A backup whose bytes were all found to be as they were written."""

    def __init__(self, parts: zipfile.ZipFile, manifest: Manifest, digest: str) -> None:
        self._zip, self.manifest, self.digest = parts, manifest, digest

    @contextmanager
    def lines(self, part: Manifest) -> Iterator[Iterator[bytes]]:
        """Read a part's lines. Raises Invalid at its end where it does not match the manifest."""
        with self._zip.open(part["name"]) as file:
            yield _checked(file, part)


@contextmanager
def opened(path: Path) -> Iterator[BackupArchive]:
    """Check a backup's every byte and open it. Raises Invalid with what is wrong."""
    with _open(path) as file:
        digest = _sound(file, path)
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
    """Return whether a file ends as a backup does, whole or not in between."""
    with path.open("rb") as file:
        return _written_digest(file) is not None


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}") from None


def _sound(file: IO[bytes], path: Path) -> str:
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


def _checked(file: IO[bytes], part: Manifest) -> Iterator[bytes]:
    digest = hashlib.sha256()
    for line in file:
        digest.update(line)
        yield line
    if digest.hexdigest() != part["sha256"]:
        raise Invalid(f"the part {part['name']} does not match the manifest")
