"""A zip archive of a recording, for formats to read: its entries by name, each limited in size; nothing is written to
disk."""

import io
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast

from conversations.core.errors import Invalid, TooLarge
from conversations.import_export.file_reader import ZIP, RecordingFile

MAX_ENTRIES = 100_000
MAX_ENTRY = 256 << 20  # bytes, unpacked
MAX_UNPACKED = 2 << 30  # bytes of all entries that are read
_BLOCK = 1 << 20
_ZSTD = 93  # a way to pack that zipfile has from Python 3.14 on (APPNOTE 4.4.5)
_WINDOW = 128 << 20  # bytes that zstd may look back
_DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)


class Archive:
    """An open archive. The sizes that entries claim are not trusted: the unpacked bytes are counted."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        self._unpackable = MAX_UNPACKED

    @property
    def names(self) -> list[str]:
        """Return the names of the entries in order, each once."""
        return list(dict.fromkeys(self._file.namelist()))

    def read(self, name: str) -> bytes:
        """Unpack one entry. Raises Invalid for a damaged one, TooLarge for more than 256 MiB, or 2 GiB in all."""
        pieces: list[bytes] = []
        size = 0
        try:
            with self._opened(name) as entry:
                while piece := entry.read(_BLOCK):
                    size += len(piece)
                    if size > min(MAX_ENTRY, self._unpackable):
                        raise TooLarge(f"the entry {name} must be at most {MAX_ENTRY >> 20} MiB, unpacked")
                    pieces.append(piece)
        except NotImplementedError:
            raise Invalid(f"the entry {name} must be stored, deflated or compressed with zstd") from None
        except KeyError:
            raise Invalid(f"the archive must have an entry {name}") from None
        except _DAMAGES as error:
            raise Invalid(f"the entry {name} is damaged: {error}") from None
        self._unpackable -= size
        return b"".join(pieces)

    def _opened(self, name: str) -> IO[bytes]:
        info = self._file.getinfo(name)
        if info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            return self._file.open(info)
        if info.compress_type != _ZSTD:  # LZMA may ask for any amount of memory
            raise NotImplementedError
        try:
            import zstandard
        except ModuleNotFoundError:
            raise Invalid(
                f"the entry {name} is compressed with zstd; to read it, run: pip install zstandard (the extra inspect)"
            ) from None
        packed = io.BytesIO(self._packed(info))
        reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(packed, read_across_frames=True)
        return cast(IO[bytes], _Zstd(reader, zstandard.ZstdError))

    def _packed(self, info: zipfile.ZipInfo) -> bytes:
        """Return an entry's packed bytes: after a header of 30 bytes and two names (APPNOTE 4.3.7)."""
        file = self._file.fp
        if file is None or info.compress_size > MAX_ENTRY or info.flag_bits & 1:
            raise TooLarge(f"the entry {info.filename} must be at most {MAX_ENTRY >> 20} MiB, and not encrypted")
        file.seek(info.header_offset)
        header = file.read(30)
        if len(header) < 30 or header[:4] != ZIP:
            raise zipfile.BadZipFile("no header")
        file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), os.SEEK_CUR)
        return file.read(info.compress_size)


class _Zstd(io.RawIOBase):
    """A zstd stream whose errors are those of the other streams."""

    def __init__(self, reader: IO[bytes], damage: type[Exception]) -> None:
        self._reader, self._damage = reader, damage

    def read(self, size: int = -1) -> bytes:
        """Read up to so many bytes."""
        try:
            return self._reader.read(size)
        except self._damage as error:
            raise zipfile.BadZipFile(str(error)) from None


@contextmanager
def open_archive(source: RecordingFile) -> Iterator[Archive]:
    """Open a file as an archive. Raises Invalid for a damaged one, TooLarge for over 100,000 entries."""
    with source.binary() as file:
        try:
            archive = zipfile.ZipFile(file)
        except _DAMAGES as error:
            raise Invalid(f"the archive is damaged: {error}") from None
        with archive:
            if len(archive.infolist()) > MAX_ENTRIES:
                raise TooLarge(f"an archive must have at most {MAX_ENTRIES:,} entries")
            yield Archive(archive)
