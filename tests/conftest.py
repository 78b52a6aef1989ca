"""What holds for every test: random examples are the same in each run, unless somebody asks for fresh ones.

How long they take says how busy the machine is, and fails no test.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from gatelift_kube.contained import Contained

BUSY = (HealthCheck.too_slow,)

settings.register_profile("same", derandomize=True, deadline=None, print_blob=True, suppress_health_check=BUSY)
settings.register_profile("fresh", deadline=None, print_blob=True, suppress_health_check=BUSY)
settings.load_profile("fresh" if os.environ.get("GATELIFT_FRESH_EXAMPLES") else "same")

Contained.surfaces = True
"""No exception is contained unseen in a test; those of containment itself let it be."""
