#!/bin/sh
# What is published, in dist/: `make dist`. Nothing is sent anywhere.
set -eu
cd "$(dirname "$0")/.."
python="$PWD/.venv-dist/bin/python"
rm -rf dist/new
mkdir -p dist/new

# A wheel of each is made of its sdist, so what an sdist lacks is noticed here.
"$python" -m build --no-isolation --outdir dist/new . >/dev/null
"$python" -m build --no-isolation --outdir dist/new clients/python >/dev/null
make --no-print-directory client-typescript >/dev/null 2>&1
mv clients/typescript/memoryhub-client-*.tgz dist/new

wheel=$(basename dist/new/memory_hub-*.whl)
version=${wheel#memory_hub-}
version=${version%-py3-none-any.whl}
# The bill of materials names all that the hub is installed with, by the hashes that are locked.
"$python" -m cyclonedx_py requirements requirements.lock --pyproject pyproject.toml --output-reproducible \
	--output-format JSON --output-file "dist/new/memory_hub-$version.cdx.json" 2>/dev/null

if command -v docker >/dev/null && docker info >/dev/null 2>&1; then
	docker build --quiet --build-arg VERSION="$version" --tag "memory-hub:$(echo "$version" | tr + -)" . >/dev/null
	docker save "memory-hub:$(echo "$version" | tr + -)" | gzip -n >"dist/new/memory_hub-$version-image.tar.gz"
else
	echo "No image: docker does not answer here."
fi

"$python" - dist/new <<'PY'
import hashlib, pathlib, sys

folder = pathlib.Path(sys.argv[1])
lines = [f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in sorted(folder.iterdir())]
(folder / "SHA256SUMS").write_text("".join(lines))
PY
# All of it, or what was there before.
rm -rf dist/before
for one in dist/*; do test "$one" = dist/new || rm -rf "$one"; done
mv dist/new/* dist/
rmdir dist/new
cat dist/SHA256SUMS
