"""What holds for every test: random examples are the same in each run, unless somebody asks for fresh ones.

How long they take says how busy the machine is, and fails no test.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

BUSY = (HealthCheck.too_slow,)

settings.register_profile("same", derandomize=True, deadline=None, print_blob=True, suppress_health_check=BUSY)
settings.register_profile("fresh", deadline=None, print_blob=True, suppress_health_check=BUSY)
settings.load_profile("fresh" if os.environ.get("GATELIFT_FRESH_EXAMPLES") else "same")
