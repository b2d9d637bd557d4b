"""The job of a driver that acknowledges its rows one by one in `foreachBatch`. Tests kill it half-way.

Arguments: its folder, its options as JSON. It appends a line to the file `output` for each row: its offset. Then it
acknowledges the row. It halts before the sink, as `drivers.points` describes, when half of the first batch is done.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from coordinator.commits.group_commits import GroupCommits
from drivers import points


def main() -> None:
    """Run until the query fails, or the file `stop` appears."""
    folder, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    spark = SparkSession.builder.appName(folder.name).config("spark.sql.codegen.wholeStage", "false").getOrCreate()
    commits = GroupCommits.of_group(options["redisUrl"], options["group"])

    def work(rows: DataFrame, batch: int) -> None:
        found = rows.collect()
        for number, row in enumerate(found):
            if number == len(found) // 2:
                points.halt(points.BEFORE_SINK)
            with (folder / "output").open("a") as output:
                output.write(f"{row.offset}\n")
            commits.acknowledge(row.acknowledgement)

    rows = spark.readStream.format("coop-kafka").options(**options).load()
    query = rows.writeStream.foreachBatch(work).option("checkpointLocation", str(folder / "checkpoint")).start()
    while not (folder / "stop").exists():
        if query.awaitTermination(1):
            return
    query.stop()


if __name__ == "__main__":
    main()
