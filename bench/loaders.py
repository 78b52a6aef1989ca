"""What the loaders of package `kubernetes` cost a process: memory and time, against one without them."""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import resource, time
import gatelift_kube.api.client
before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
import kubernetes.aio.client, kubernetes.aio.config.incluster_config
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(before / 1024, after / 1024, time.perf_counter() - began)
"""


def main() -> None:
    """Measure in a process of its own and print."""
    answer = subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True).stdout
    without, with_loaders, seconds = (float(each) for each in answer.split())
    print(f"without {without:.0f} MB, with the loaders {with_loaders:.0f} MB, {seconds:.2f} s")
    found = {
        "without_mb": round(without),
        "with_mb": round(with_loaders),
        "ratio": round(with_loaders / without, 2),
        "import_seconds": round(seconds, 2),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
