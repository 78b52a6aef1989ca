"""Which modules belong to which provider (`GATELIFT_E2E_PROVIDER`, default local); all others run on each."""

from __future__ import annotations

import os

PROVIDER = os.environ.get("GATELIFT_E2E_PROVIDER") or "local"
MODULES_OF = {"local": ("test_local_provider.py",), "kind": ("test_kind_provider.py", "test_k3s_engine.py")}

collect_ignore = [module for provider, modules in MODULES_OF.items() if provider != PROVIDER for module in modules]
