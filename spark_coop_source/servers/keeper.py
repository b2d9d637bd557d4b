"""Runs a command until its own stdin ends, so no longer than its parent lives, however that one ends.

    keeper.py FOLDER COMMAND...

At the end of stdin, or at SIGTERM, it kills the command with its children, and removes the folder. If the command ends
before, it ends too, and leaves the folder to the parent. It needs no time to start: standard library only, and run with
`-I -S`.
"""

import os
import select
import shutil
import signal
import subprocess
import sys

_LOOK_S = 0.1

if __name__ == "__main__":
    _, folder, *command = sys.argv
    ends = [sys.stdin]
    signal.signal(signal.SIGTERM, lambda *_: ends.clear())
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
    while child.poll() is None:
        if not ends or select.select(ends, [], [], _LOOK_S)[0]:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            shutil.rmtree(folder, ignore_errors=True)
            sys.exit()
    sys.exit(1)
