"""Becomes another program, which the kernel ends with its parent: `launch.py OWNER_PID PROGRAM ARGUMENT...`.

Started by `children` with `python -I -S`, so it imports nothing but the standard library.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1

owner = int(sys.argv[1])
if sys.platform == "linux":
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != owner:  # it died before the call above
        sys.exit("the owner of this process has ended")
os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 (there is no shell, and that is the point)
