"""Spark's autoload: installed as `pyspark_coop_kafka`, this module makes `format("coop-kafka")` known.

When a session first looks for a Python source, Spark imports every installed `pyspark_*`. If one of them raises, Spark
ignores them all. So this file imports nothing of ours until the source is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """The source under the name that Spark looks for; `CoopKafkaDataSource` does the work."""

    _has_reader = False

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "coop-kafka"

    def schema(self) -> StructType | str:
        """See `CoopKafkaDataSource.schema`."""
        return self._source().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """See `CoopKafkaDataSource.reader`."""
        self._has_reader = True
        return self._source().reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """See `CoopKafkaDataSource.streamReader`."""
        self._has_reader = True
        return self._source().streamReader(schema)

    def _source(self) -> DataSource:
        from spark_coop_source.source import CoopKafkaDataSource  # noqa: PLC0415

        return CoopKafkaDataSource(self.options)

    def __getstate__(self) -> dict[str, Any]:
        """See `CoopKafkaDataSource.__getstate__`."""
        return {"options": {}} if self._has_reader else {"options": self.options}
