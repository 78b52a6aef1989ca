"""What holds for every test: random examples are the same in each run, unless somebody asks for fresh ones."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile("fresh" if os.environ.get("GATELIFT_FRESH_EXAMPLES") else "same")
