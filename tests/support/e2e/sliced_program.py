"""`gatelift` with the kinds `WITH_SLICES`, run as a module by daemons and verbs of end-to-end tests.

Everything takes the kinds by importing `SERVED`; so they are others for whoever imports them after this line.
"""

from __future__ import annotations

import importlib

from gatelift_kinds import registry

PROGRAM = ("-m", __spec__.name if __spec__ is not None else __name__)
"""How Python runs this."""

if __name__ == "__main__":
    registry.SERVED = registry.WITH_SLICES
    importlib.import_module("gatelift.cli.main").main()
