"""Lives through random walks, seed after seed, and tells which break a promise; ends with 1 where one does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable


def main(about: str | None, live: Callable[[int], object], breaks: type[Exception]) -> int:
    """Live through as many as the command line says; `live` takes a seed, and raises `breaks`."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    chosen = parser.parse_args()
    failed = 0
    for seed in range(chosen.first, chosen.first + chosen.count):
        try:
            live(seed)
        except breaks as error:
            failed += 1
            sys.stdout.write(f"{error}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{chosen.count} walks, {failed} failed\n")
    return 1 if failed else 0
