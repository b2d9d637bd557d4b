"""A `StreamingQueryListener` that passes our part of each progress to a callback.

    spark.streams.addListener(ProgressListener(lambda progress: print(progress.max_offsets_behind_latest)))

Spark calls it in the Python driver, on a thread of its own, after each trigger.
"""

import logging
from collections.abc import Callable

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from spark_coop_source import logs
from spark_coop_source.metrics.query_progress import QueryProgress, of_progress

log = logging.getLogger(__name__)


class ProgressListener(StreamingQueryListener):
    """Calls `callback(progress)` for each of our reads in each progress, and `callback.ended(run_id)` if it has that.

    An error of the callback is logged, and the query goes on.
    """

    def __init__(self, callback: Callable[[QueryProgress], object]) -> None:
        logs.configure()
        self._callback = callback

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing: the first progress follows."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Pass our part on. Other sources are left out."""
        for progress in of_progress(event.progress.json):
            try:
                self._callback(progress)
            except Exception:  # the user's code must not hurt the listeners of the session
                log.exception("the callback of a ProgressListener failed, the query continues")

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing: the values of the last progress hold."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Pass the end on."""
        ended = getattr(self._callback, "ended", None)
        if ended is not None:
            ended(str(event.runId))
