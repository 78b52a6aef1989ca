"""Waits until another process has ended, then becomes a command: `reap.py OWNER_PID PROGRAM ARGUMENT...`.

Where a cluster is not made of our children (containers of an engine), this is what ends it when its owner was killed.
Started detached by `kind`; stopped by `down` when the cluster was ended in the ordinary way.
"""

import contextlib
import os
import select
import sys

owner = int(sys.argv[1])
with contextlib.suppress(ProcessLookupError):  # it has ended already
    select.select([os.pidfd_open(owner)], [], [])  # readable once the process has ended
os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 (there is no shell, and that is the point)
