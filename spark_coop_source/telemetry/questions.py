"""A task's questions about its ends, and the answers of the reader process, as texts of frames.

    question  {"number": 7, "batch": "<digest>", "task": 3}                 the ends of an earlier attempt?
              {"number": 8, "batch": "<digest>", "task": 3, "ends": "..."}  the task has ended its slices here
               "failing": {"orders 0 <hash>": "deferred ..."}, "skipped": 2, "dead_lettered": 1,
               "kafka_away": true}                                            optional, with `ends`
    answer    {"number": 8, "ends": "..."}                                  the ends that count; none: not ended yet
              {"number": 8, "refused": "..."}

`ends` has the form of a seal. Pure.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.errors import CoopKafkaError
from coordinator.progress.ends import Ends, parsed, text_of
from coordinator.progress.failing import NO_FAILURES, FailingRecord, Failures


@dataclass(frozen=True, slots=True)
class TaskQuestion:
    """What a task asks. `number`: unique on its connection. `ends`: where it has ended its slices.

    `failures` come with the ends.
    """

    number: int
    batch: str  # the digest
    task: int  # its number in the batch
    ends: Ends | None = None
    failures: Failures = NO_FAILURES

    @property
    def text(self) -> bytes:
        """The text of its frame."""
        asked = {"number": self.number, "batch": self.batch, "task": self.task}
        return json.dumps(asked | _of(self.ends) | _of_failures(self.failures)).encode()

    @classmethod
    def parse(cls, text: bytes) -> "TaskQuestion | None":
        """The question of a text; None for a text of another form."""
        try:
            fields = json.loads(text)
            number, batch, task = int(fields["number"]), str(fields["batch"]), int(fields["task"])
            return cls(number, batch, task, _ends(fields), _failures(fields))
        except (ValueError, TypeError, KeyError, OverflowError, AttributeError, RecursionError, CoopKafkaError):
            return None


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """The answer: the ends that count, None if no attempt has ended; or why the task is refused."""

    number: int
    ends: Ends | None = None
    refused: str = ""

    @property
    def text(self) -> bytes:
        """The text of its frame."""
        refused = {"refused": self.refused} if self.refused else {}
        return json.dumps({"number": self.number} | _of(self.ends) | refused).encode()

    @classmethod
    def parse(cls, text: bytes) -> "TaskAnswer | None":
        """The answer of a text; None for a text of another form."""
        try:
            fields = json.loads(text)
            return cls(int(fields["number"]), _ends(fields), str(fields.get("refused", "")))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError, CoopKafkaError):
            return None


def _of(ends: Ends | None) -> dict[str, str]:
    return {} if ends is None else {"ends": text_of(ends)}


def _ends(fields: Mapping[str, Any]) -> Ends | None:
    return parsed(fields["ends"]) if "ends" in fields else None


def _of_failures(failures: Failures) -> dict[str, object]:
    counted = {"skipped": failures.skipped, "dead_lettered": failures.dead_lettered, "kafka_away": failures.kafka_away}
    failing = {record.field: record.text for record in failures.failing}
    return {name: value for name, value in ({"failing": failing} | counted).items() if value}


def _failures(fields: Mapping[str, Any]) -> Failures:
    failing = tuple(FailingRecord.parse(field, text) for field, text in fields.get("failing", {}).items())
    counted = int(fields.get("skipped", 0)), int(fields.get("dead_lettered", 0))
    return Failures(failing, *counted, fields.get("kafka_away") is True)
