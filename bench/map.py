"""What the search of `trifecta map` costs against a full grid, and whether its intervals hold.

``python -m bench.map [--maps N]`` draws blocks of known surfaces and prints the tables of RESULTS.md.
``python -m bench.map --real DIR`` measures a full grid and a map side by side, and goes on with what is in DIR.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small: threads make the fits three times slower
# Nothing is imported here that starts threads (numpy): --real enters the sandbox first.


def main() -> int:
    """Run the simulation, or the real run."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = reader.add_argument_group("known surfaces")
    known.add_argument("--maps", type=int, default=8)
    known.add_argument("--repeats", type=int, nargs="*", default=[1, 2])
    known.add_argument("--surface", nargs="*", help="only these")
    known.add_argument("--scatter", nargs="*", help="only these")
    known.add_argument("--modelled", type=int, default=0, help="how many full grids to smooth by the same surface")
    known.add_argument("--workers", type=int, default=1)
    real = reader.add_argument_group("the real run")
    real.add_argument("--real", type=Path, metavar="DIR", help="its folder; one that is there is gone on with")
    real.add_argument("--x", default="rtt=5ms..100ms")
    real.add_argument("--y", default="loss=0..2%")
    real.add_argument("--side", type=int, default=16, help="places on each axis")
    real.add_argument("--blocks", type=int, help="of the search (default: a quarter of the grid's)")
    real.add_argument("--held-out", type=int, help="blocks that judge both (default: a quarter of the grid's)")
    real.add_argument("--minutes", type=float, default=17.0, help="time to measure; the comparison comes on top")
    real.add_argument("--seed", type=int, default=1)
    asked = reader.parse_args()
    if asked.real is not None:
        from bench.mapping import real as real_run

        return real_run.main(asked)
    from bench.mapping import known as known_surfaces

    return known_surfaces.main(asked)


if __name__ == "__main__":
    raise SystemExit(main())
