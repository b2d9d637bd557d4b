"""The stream reader of invalid options: its first call raises the error.

If the construction of a reader raises, Spark's runner ends the message with a fault of its own (UnboundLocalError). It
shows an error of a call unchanged. Runs in the reader process; imports nothing that a process may lack.
"""

from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from coordinator.errors import CoopKafkaError
from spark_coop_source.environment import errors_in_one_line


class RefusedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Raises the error in the first call: of a new query, of a restart, of AvailableNow."""

    def __init__(self, error: CoopKafkaError) -> None:
        self._error = error

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises the error."""
        with errors_in_one_line():
            raise self._error

    prepareForTriggerAvailableNow = initialOffset = latestOffset = partitions = read = _refuse
