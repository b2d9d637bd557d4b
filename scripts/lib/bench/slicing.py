"""The tasks of one of our batches, without Spark: the same that `spark.read` would send to its workers."""

from collections.abc import Sequence

from pyspark.sql.datasource import InputPartition

from bench.sources import reader
from bench.world import World
from spark_coop_source.driver.batch_reader import CoopKafkaBatchReader
from spark_coop_source.options.options import validate
from spark_coop_source.task.partition import SlicePartition


def tasks(world: World, topic: str, **options: str) -> Sequence[SlicePartition]:
    """The input partitions of a topic, as our batch reader plans them."""
    checked = validate({**reader(world, topic), **options}, streaming=False)
    planned: list[InputPartition] = CoopKafkaBatchReader(checked).partitions()
    return [each for each in planned if isinstance(each, SlicePartition)]
