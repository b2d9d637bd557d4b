"""Partitions whose leader does not answer: how long, the one line about them, and the end of patience.

Driver side; the thread of Spark's calls. Knows names and time; sends nothing.
"""

import logging
from collections.abc import Iterable, Mapping
from time import monotonic

from coordinator.errors import KafkaUnavailableError
from coordinator.kafka.connection import SHORTLY_S
from coordinator.values.subscription import TopicPartition

_log = logging.getLogger(__name__)

LISTED = 5  # partitions; a line counts the rest


class Silence:
    """The partitions without an answer, each since its first look without one."""

    def __init__(self, patience_ms: int) -> None:
        self._patience_s = patience_ms / 1000
        self._since: dict[TopicPartition, float] = {}
        self._told: float | None = None  # when the first of those began that a line has named

    def noticed(self, asked: Iterable[TopicPartition], missing: Mapping[TopicPartition, str]) -> None:
        """One look at some partitions: those without an answer, and why.

        Raises `KafkaUnavailableError` once one of them has been silent for longer than the patience.
        """
        now = monotonic()
        of_others = {tp: since for tp, since in self._since.items() if tp not in {*asked}}
        self._since = {**of_others, **{tp: self._since.get(tp, now) for tp in missing}}
        longest_s = max((now - self._since[tp] for tp in missing), default=0.0)
        if longest_s >= self._patience_s and missing:
            raise KafkaUnavailableError(_named(missing) + (f", for {longest_s:.0f} s" if longest_s else ""))
        if missing and self._told is None and longest_s >= SHORTLY_S:
            self._told = now - longest_s
            _log.warning(
                "%s; their records wait, for up to %.0f s",
                _named(missing),
                self._patience_s,
            )
        elif self._told is not None and not self._since:
            _log.warning("all partitions have a leader that answers again, after %.0f s", now - self._told)
            self._told = None


def _named(missing: Mapping[TopicPartition, str]) -> str:
    """The partitions by the reason that they share."""
    by_reason: dict[str, list[str]] = {}
    for tp, why in sorted(missing.items()):
        by_reason.setdefault(why, []).append(str(tp))
    texts = []
    for why, names in by_reason.items():
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        texts.append(f"{', '.join(names[:LISTED])}{more} ({why})")
    return f"no leader answers for {'; '.join(texts)}"
