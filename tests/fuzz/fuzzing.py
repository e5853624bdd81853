"""Fuzzing of the parsers in Python: mutations of real files, counted, until enough were read or the time is over."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence

TELLING = b'\x00\x01\x08\x0a\x0d"{}[],:-0129eE.\\/\x7f\x80\xbf\xfe\xff'
SECONDS = 5.0


def mutated(sample: bytes, draws: random.Random) -> bytes:
    """One to eight changes: bits flipped, octets set, parts cut out, doubled or moved, the end cut off."""
    data = bytearray(sample)
    for _ in range(draws.randint(1, 8)):
        at = draws.randrange(len(data)) if data else 0
        length = draws.randint(0, min(32, len(data) - at))
        kind = draws.randrange(12)
        if not data or kind == 0:
            data[at:at] = draws.randbytes(draws.randint(1, 4))
        elif kind < 3:
            data[at] ^= 1 << draws.randrange(8)
        elif kind < 6:
            data[at] = draws.choice(TELLING)
        elif kind < 8:
            del data[at : at + length]
        elif kind < 9:
            to = draws.randrange(len(data) + 1)
            data[to:to] = data[at : at + length]
        elif kind < 11:
            data[at : at + length] = draws.choice(
                (b"null", b"-1", b"1e999", b"[]", b"{}", b'""', b"18446744073709551616")
            )
        elif draws.random() < 0.2:
            del data[at:]
    return bytes(data)


def fuzz(name: str, samples: Sequence[bytes], target: Callable[[bytes], None]) -> int:
    """Feed mutations of ``samples`` to ``target``, which must not raise; how many it were.

    Until TRIFECTA_FUZZ_INPUTS were read or TRIFECTA_FUZZ_SECONDS are over, whichever is first (5 s without either).
    TRIFECTA_FUZZ_SEED is where the seeds begin: input N has the seed that a failure names.
    """
    inputs = int(os.environ.get("TRIFECTA_FUZZ_INPUTS", "0")) or None
    limit = os.environ.get("TRIFECTA_FUZZ_SECONDS") or (None if inputs else SECONDS)
    first = seed = int(os.environ.get("TRIFECTA_FUZZ_SEED", "0"))
    began = time.monotonic()
    while (inputs is None or seed - first < inputs) and (limit is None or time.monotonic() - began < float(limit)):
        draws = random.Random(f"{name} {seed}")
        data = mutated(draws.choice(samples), draws)
        try:
            target(data)
        except BaseException as error:
            raise AssertionError(
                f"{name}: seed {seed}: {type(error).__name__}: {error}; input {data[:400]!r}"
            ) from error
        seed += 1
    print(f"fuzz {name}: {seed - first} inputs in {time.monotonic() - began:.0f} s")
    return seed - first
