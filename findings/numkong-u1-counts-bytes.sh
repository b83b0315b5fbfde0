#!/bin/bash
# numkong==7.8.6 (the successor of simsimd), numpy==2.4.6, Python 3.11.
# The docstring of hamming() names dtype 'u1' for packed bits, as the library's names are: 'u1' beside 'u4' and 'i4'.
# Seen: strings are read as NumPy's codes, whose number is of bytes: 'u1' is uint8. So hamming(a, b, dtype="u1") of codes
# in bytes counts the BYTES that differ: no error, plausible numbers, other neighbours. Without a dtype it is the same.
# dtype="uint1" counts bits, and so does hammings_packed() after hammings_pack(b) without a dtype; after
# hammings_pack(b, dtype="u1") it has no kernel. The documented 'i8' of dot() is NumPy's int64 in the same way: int8
# is refused, with "int8" it works.
# Remedy: write uint1, uint4, int4, int8. A check with two codes that differ in one byte by two bits shows which it is.
# Output seen:
#   two bits of one byte differ: uint1 2, u1 1, no dtype 1
#   of the nearest 10 of 2000 codes by uint1 those by u1 have 0.6
#   hammings_pack without dtype: bits; with u1: LookupError
#   dot of int8: 'i8' LookupError, 'int8' 64
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: numkong==7.8.6 numpy==2.4.6 2>/dev/null
cd "$folder"
cat > run.py <<'P'
import numkong
import numpy as np

assert "'u1'" in numkong.hamming.__doc__ and "'i8'" in numkong.dot.__doc__

def near(a, b, **dtype):
    return np.asarray(numkong.cdist(a, b, "hamming", **dtype))[0]

zero, other = np.zeros((1, 64), np.uint8), np.zeros((1, 64), np.uint8)
other[0, 5] = 0b101
bits, read, plain = (near(zero, other, **given)[0] for given in ({"dtype": "uint1"}, {"dtype": "u1"}, {}))
assert float(numkong.hamming(zero[0], other[0], dtype="u1")) == read
print(f"two bits of one byte differ: uint1 {bits:.0f}, u1 {read:.0f}, no dtype {plain:.0f}")
assert (bits, read, plain) == (2, 1, 1)

# Codes of 512 bits: the near ones differ in three tenths of the bits, the others in a half.
rng = np.random.default_rng(0)
asked = rng.random((1, 512)) < 0.5
codes = np.where(np.arange(2000)[:, None] < 10, asked ^ (rng.random((2000, 512)) < 0.3), rng.random((2000, 512)) < 0.5)
packed, of_asked = np.packbits(codes, axis=1), np.packbits(asked, axis=1)
truth = np.unpackbits(packed ^ of_asked, axis=1).sum(axis=1)
assert (near(of_asked, packed, dtype="uint1") == truth).all()
best = [set(np.argsort(near(of_asked, packed, dtype=one), kind="stable")[:10].tolist()) for one in ("uint1", "u1")]
print(f"of the nearest 10 of 2000 codes by uint1 those by u1 have {len(best[0] & best[1]) / 10}")
assert best[0] == set(range(10)) and len(best[0] & best[1]) < 9

found = np.asarray(numkong.hammings_packed(packed, numkong.hammings_pack(of_asked)))[:, 0]
assert (found == truth).all()
try:
    numkong.hammings_packed(packed, numkong.hammings_pack(of_asked, dtype="u1"))
    raise SystemExit("it has a kernel now")
except LookupError as error:
    print(f"hammings_pack without dtype: bits; with u1: {type(error).__name__}")

ones = np.ones(64, np.int8)
try:
    numkong.dot(ones, ones, dtype="i8")
    raise SystemExit("int8 is taken now")
except LookupError as error:
    print(f"dot of int8: 'i8' {type(error).__name__}, 'int8' {float(numkong.dot(ones, ones, dtype='int8')):.0f}")
P
venv/bin/python run.py | tee out
test "$(wc -l < out)" -eq 4
