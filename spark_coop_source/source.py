"""`format("coop-kafka")`: what Spark finds, and asks first.

Spark pickles this object and constructs readers from it in several processes; nothing here does IO.
Options are validated in `schema`, where a message reaches the user intact, and again in each reader,
since `schema` is skipped when the user gives one. Imports wait until they are needed, so that a
process whose Python lacks a package can say so.
"""

# ruff: noqa: PLC0415 - see the last sentence above

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from spark_coop_source.environment import needed_packages

if TYPE_CHECKING:
    from spark_coop_source.options import SourceOptions


class CoopKafkaDataSource(DataSource):
    """The Kafka source that splits partitions by key hash; see README for its options."""

    @classmethod
    def name(cls) -> str:
        """The name in `format(...)`."""
        return "coop-kafka"

    def schema(self) -> StructType:
        """The row schema of Spark's own Kafka source; a wrong option is refused here."""
        with needed_packages():
            from spark_coop_source import schema as row_schema
            from spark_coop_source.options import validate
        return row_schema.schema(validate(self.options, streaming=None).include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of `spark.read`: joins no group, commits nothing."""
        with needed_packages():
            from spark_coop_source.batch_reader import CoopKafkaBatchReader
        return CoopKafkaBatchReader(self._checked(schema, streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader of `spark.readStream`."""
        with needed_packages():
            from spark_coop_source.stream_reader import CoopKafkaStreamReader
        return CoopKafkaStreamReader(self._checked(schema, streaming=True))

    def _checked(self, schema: StructType, *, streaming: bool) -> "SourceOptions":
        with needed_packages():
            from spark_coop_source import schema as row_schema
            from spark_coop_source.options import validate
        options = validate(self.options, streaming=streaming)
        row_schema.check_user_schema(schema, options.include_headers)
        return options
