"""Becomes another program, which the kernel kills when the parent dies in any way (Linux only).

    bound.py PARENT COMMAND [ARGUMENT...]

It is a program of its own, because code between fork and exec of a process with threads may hang it or swallow Ctrl-C.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == int(parent):  # else the parent died before the kernel could watch it
        os.execvp(command[0], command)
