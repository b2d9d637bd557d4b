"""Becomes another program that the kernel kills when the parent dies, however that happens (Linux only).

    bound.py PARENT COMMAND [ARGUMENT...]

A program of its own, since code run between fork and exec of a process with threads may hang it or swallow Ctrl-C.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == int(parent):  # else it died before it could be watched
        os.execvp(command[0], command)
