"""The job of a driver that commits each batch in order, in its `foreachBatch`: reserve, work, commit.

It commits the planned range, which is not safe in general: a task may end early. Its test sends one record at a time.
While the file `hold` is in its folder, it works on and renews its reservation. Its steps are in the file `ordered`.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame

from coordinator.commits.commit_api import CommitApi
from coordinator.commits.ordered_commits import OrderedCommits
from coordinator.errors import OrderedCommitRefusedError
from coordinator.progress.stream_offset import StreamOffset
from coordinator.ranges import OffsetRange
from drivers import job

LEASE_MS = 3_000
_RENEW_S = 0.3


def in_order(rows: DataFrame, batch: int, folder: Path, options: Mapping[str, str]) -> None:
    """The sink: all workers of this kind have the same name, as in one program that runs on several hosts."""
    text = (folder / "checkpoint" / "offsets" / str(batch)).read_text().splitlines()[-1]
    end = StreamOffset.from_json(json.loads(text))
    if not any(lane.offsets for _, lane in end):  # Spark's first batch has the initial offset, without a member
        job.append_batch(rows, batch, folder / "output")
        return
    ((tp, lanes),) = end.lanes.items()
    offsets = OffsetRange(min(lane.position for lane in lanes), max(lane.until for lane in lanes))
    with CommitApi.of_offset(options["redis.url"], text) as commits:
        worker = OrderedCommits(commits, "worker", LEASE_MS)
        worker.reserve(tp, offsets)
        _note(folder, "reserved", offsets)
        job.append_batch(rows, batch, folder / "output")
        while (folder / "hold").exists():
            worker.reserve(tp, offsets)
            time.sleep(_RENEW_S)
        try:
            _note(folder, "committed", offsets, worker.commit(tp, offsets).stable)
        except OrderedCommitRefusedError as refused:
            _note(folder, "refused", offsets, refused)


def _note(folder: Path, step: str, offsets: OffsetRange, more: object = "") -> None:
    with (folder / "ordered").open("a", encoding="utf-8") as file:
        file.write(f"{step} {offsets} {more}\n")


if __name__ == "__main__":
    job.main(in_order)
