"""The job of a driver that commits each batch in order, in its `foreachBatch`: reserve, work, commit.

It commits the offsets that its rows cover, by their acknowledgements, so it needs the column of this name. While the
file `hold` is in its folder, it works on and renews its reservation. Its steps are in the file `ordered`.
"""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame

from coordinator.commits.commit_api import CommitApi
from coordinator.commits.ordered_commits import OrderedCommits
from coordinator.errors import OrderedCommitRefusedError
from coordinator.progress.acknowledgement import Acknowledgement
from drivers import job

LEASE_MS = 3_000
_RENEW_S = 0.3


def in_order(rows: DataFrame, batch: int, folder: Path, options: Mapping[str, str]) -> None:
    """The sink: all workers of this kind have the same name, as in one program that runs on several hosts."""
    texts = [row.acknowledgement for row in rows.select("acknowledgement").collect()]
    covered = [Acknowledgement.parse(text)[0] for text in texts]
    if not covered:
        job.append_batch(rows, batch, folder / "output")
        return
    offset = (folder / "checkpoint" / "offsets" / str(batch)).read_text().splitlines()[-1]
    with CommitApi.of_offset(options["redisUrl"], offset) as commits:
        worker = OrderedCommits(commits, "worker", LEASE_MS)
        worker.reserve_rows(texts)
        _note(folder, "reserved", covered)
        job.append_batch(rows, batch, folder / "output")
        while (folder / "hold").exists():
            worker.reserve_rows(texts)
            time.sleep(_RENEW_S)
        try:
            _note(folder, "committed", covered, worker.commit_rows(texts)[-1].stable)
        except OrderedCommitRefusedError as refused:
            _note(folder, "refused", covered, refused)


def _note(folder: Path, step: str, covered: Iterable[Acknowledgement], more: object = "") -> None:
    offsets = ",".join(str(a.offsets) for a in covered)
    with (folder / "ordered").open("a", encoding="utf-8") as file:
        file.write(f"{step} {offsets} {more}\n")


if __name__ == "__main__":
    job.main(in_order)
