"""The interface's font: Inter, of which pages get the letters and weights that they use, 14 kB instead of 860.

Cut from the package `fontpkg-inter` once for each environment (2.5 s of CPU), by `make` or before static files are
collected. Where that cannot be done, pages use the system's font.
Run as `python -m dashboard.interface_font`.
"""

import hashlib
import logging
import os
import sys
import tempfile
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

LATIN = "inter-latin.woff2"
EXTENDED = "inter-latin-extended.woff2"
# What each file draws, as CSS writes it. The first is on every page; the second is fetched where a letter of it is.
UNICODE_RANGES = {
    LATIN: "U+20-7E, U+A0, U+B7, U+2013-2014, U+2018-2019, U+201C-201D, U+2026, U+2192",
    EXTENDED: "U+A1-B6, U+B8-17F, U+201A, U+201E, U+2022, U+2039-203A, U+20AC, U+2122, U+2190, U+2212, U+2264-2265",
}
WEIGHTS = (400, 600)  # `--weight-normal` to `--weight-strong` of static/css/tokens.css
OPTICAL_SIZE = 14
FEATURES = ("kern", "mark", "tnum")
_PACKAGE = "fontpkg_inter"

logger = logging.getLogger(__name__)


def folder() -> Path:
    """Return where this environment's files are: a folder for each size of the font and each way to cut it."""
    source = _source()
    size = source.stat().st_size if source is not None and source.exists() else 0
    recipe = repr((size, UNICODE_RANGES, WEIGHTS, OPTICAL_SIZE, FEATURES))
    return Path(sys.prefix) / "share" / "switchboard" / f"font-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def is_ready() -> bool:
    """Whether the files are there."""
    return all((folder() / name).is_file() for name in UNICODE_RANGES)


def prepare() -> None:
    """Make the files unless they are there. Log a warning where that is impossible: pages do without."""
    if is_ready():
        return
    try:
        folder().mkdir(parents=True, exist_ok=True)
        for name, ranges in UNICODE_RANGES.items():
            _write(folder() / name, ranges)
    except (ImportError, OSError) as error:
        logger.warning("Pages use the system's font: %s", error)


def font_faces() -> str:
    """Return the CSS that names the files, for a sheet in the folder `css`."""
    return "".join(
        f'@font-face {{ font-family: "Inter"; font-weight: {WEIGHTS[0]} {WEIGHTS[1]}; font-display: optional; '
        f'src: url("../fonts/{name}") format("woff2"); unicode-range: {ranges}; }}\n'
        for name, ranges in UNICODE_RANGES.items()
    )


def _source() -> Path | None:
    spec = find_spec(_PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "files" / "Inter[opsz,wght].ttf"


def _write(target: Path, ranges: str) -> None:
    """Write one file, whole or not at all: several processes may do it at once."""
    from fontTools import subset  # type: ignore[import-untyped]  # fontTools is untyped
    from fontTools.varLib import instancer  # type: ignore[import-untyped]

    source = _source()
    if source is None:
        raise ImportError(f"{_PACKAGE} is not installed")
    options = subset.Options()
    options.layout_features = list(FEATURES)
    options.hinting = False
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=subset.parse_unicodes(ranges.replace("U+", "")))
    handle, partial = tempfile.mkstemp(dir=target.parent)
    with subset.load_font(BytesIO(source.read_bytes()), options) as font, open(handle, "wb") as file:
        subsetter.subset(font)
        cut = instancer.instantiateVariableFont(font, {"opsz": OPTICAL_SIZE, "wght": WEIGHTS})
        cut.flavor = "woff2"
        cut.save(file)
    os.chmod(partial, 0o644)
    os.replace(partial, target)


if __name__ == "__main__":
    prepare()
