"""Which records of a partition a group has done: these, and no others, must be in the sink.

    hash  |##########....####|      #  done: before the position of its lane, or an individual commit
          |####..............|      .  not done: a gap above the stable offset; it may be in the sink already
               ^ stable offset

Pure.
"""

import numpy as np

from coordinator.progress.segments import Progress
from coordinator.tools.audit.columns import LogColumns, MaskColumn


def done(progress: Progress, log: LogColumns) -> MaskColumn:
    """Whether each record is done. Below the stable offset no hash is looked at."""
    mask = np.ones(len(log.offsets), np.bool_)
    above = int(np.searchsorted(log.offsets, progress.stable))
    offsets, hashes = log.offsets[above:], log.hashes[above:]
    if not len(offsets):
        return mask
    los = np.array([s.hashes.lo for s in progress.segments], np.int64)
    his = np.array([s.hashes.hi for s in progress.segments], np.int64)
    positions = np.array([s.position for s in progress.segments], np.int64)
    segment = np.searchsorted(los, hashes, "right") - 1
    mask[above:] = (offsets < positions[segment]) & (segment >= 0) & (hashes <= his[segment])
    for number, of_segment in enumerate(progress.segments):
        for commit in of_segment.ics:
            first, last = np.searchsorted(offsets, [commit.start, commit.until]).tolist()
            mask[above + first : above + last] |= segment[first:last] == number
    return mask
