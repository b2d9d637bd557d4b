"""`format("coop-kafka")`: the class that Spark looks up and calls first.

Spark pickles this object and constructs readers from it in several processes; nothing here does IO. Executors get it
too, in the closure of the reader; there it has no options.

`schema` validates the options, because there the user sees the whole message. Each reader validates them again, because
Spark skips `schema` when the user passes one. Imports wait until they are needed, so that a process whose Python lacks
a package can name it.
"""

# ruff: noqa: PLC0415 - see the last sentence above

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from coordinator.errors import CoopKafkaError
from spark_coop_source import logs
from spark_coop_source.driver.refused_reader import RefusedStreamReader
from spark_coop_source.environment import needed_packages

if TYPE_CHECKING:
    from spark_coop_source.function.user_function import UserFunction
    from spark_coop_source.options.declarations import SourceOptions


class CoopKafkaDataSource(DataSource):
    """The Kafka source that splits partitions by key hash; docs/options.md lists its options."""

    _has_reader = False

    @classmethod
    def name(cls) -> str:
        """The name in `format(...)`."""
        return "coop-kafka"

    def schema(self) -> StructType | str:
        """The row schema of Spark's own Kafka source, or that of the user's function. Refuses invalid options."""
        with needed_packages():
            from spark_coop_source.arrow_output import schema as row_schema
            from spark_coop_source.options.options import validate
        options = validate(self.options, streaming=None)
        made = options.function_output
        return row_schema.schema(options.columns) if made is None else made

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of `spark.read`: joins no group, commits nothing."""
        self._has_reader = True
        with needed_packages():
            from spark_coop_source.driver.batch_reader import CoopKafkaBatchReader, FilteringBatchReader
        options, function = self._checked(schema, streaming=False)
        made = FilteringBatchReader if options.push_filters else CoopKafkaBatchReader
        return made(options, function)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader of `spark.readStream`. If the options are invalid, its first call raises the error."""
        self._has_reader = True
        try:
            with needed_packages():
                from spark_coop_source.driver.stream_reader import CoopKafkaStreamReader
            return CoopKafkaStreamReader(*self._checked(schema, streaming=True))
        except CoopKafkaError as error:
            return RefusedStreamReader(error.with_traceback(None))

    def _checked(self, schema: StructType, *, streaming: bool) -> "tuple[SourceOptions, UserFunction | None]":
        with needed_packages():
            from spark_coop_source.arrow_output import schema as row_schema
            from spark_coop_source.function.user_function import UserFunction
            from spark_coop_source.options.options import validate
        logs.configure()
        options = validate(self.options, streaming=streaming)
        if options.function is not None:
            return options, UserFunction(
                options.function,
                schema,
                options.takes,
                options.concurrency,
                options.timeout_ms,
                options.function_on_error,
            )
        row_schema.check_user_schema(schema, options.columns)
        return options, None

    def __getstate__(self) -> dict[str, Any]:
        """The options, which contain secrets of the driver, until a reader is made; nothing after that.

        Spark pickles this object twice. The process that checks the schema does so for the driver's other processes.
        The process that plans the read makes a reader first, and then pickles both for executors.
        """
        return {"options": {}} if self._has_reader else {"options": self.options}
