"""Faults in dead letters and in their redrive."""

from mutants.fault import Edit, Fault

_LETTERS = "spark_coop_source/dead_letters/dead_letters.py"
_PRODUCER, _PLAN = "coordinator/kafka/producer.py", "coordinator/tools/operations/redrive_plan.py"
_REDRIVE, _VALUE = "coordinator/tools/operations/redrive.py", "coordinator/values/dead_letter.py"
_TASK = ("tests/spark_coop_source/dead_letters/test_dead_letters.py",)
_PLANNED = ("tests/coordinator/tools/operations/test_redrive_plan.py",)
_REDRIVEN = ("tests/coordinator/tools/operations/test_redrive.py",)

FAULTS = (
    Fault(
        "a task ends before its dead letters are in Kafka",
        (Edit(_LETTERS, "            self.flush()\n            if self._producer", "            if self._producer"),),
        _TASK,
    ),
    Fault(
        "dead letters of a key go to the partition number of their source",
        (Edit(_LETTERS, "partition_for(record.key, partitions", "partition_for(None, partitions"),),
        _TASK,
    ),
    Fault(
        "a record that Kafka refused counts as written",
        (
            Edit(
                _PRODUCER,
                "                raise _failure(error, record, self.servers) from None\n",
                "                del error\n",
            ),
        ),
        ("tests/coordinator/kafka/test_producer.py",),
    ),
    Fault(
        "a redrive takes the first headers of a dead letter for its own",
        (
            Edit(
                _VALUE,
                "tuple(headers[: -len(HEADERS)]), headers[-len(HEADERS) :]",
                "tuple(headers[len(HEADERS) :]), headers[: len(HEADERS)]",
            ),
        ),
        ("tests/coordinator/values/test_dead_letter.py",),
    ),
    Fault(
        "a redrive of one key moves the position past the others",
        (
            Edit(
                _PLAN,
                "    return RedriveProgress(left[0], tuple(ranges))\n",
                "    return RedriveProgress(max(done, default=left[0] - 1) + 1)\n",
            ),
        ),
        _PLANNED,
    ),
    Fault(
        "a later dead letter of the key counts as a record that comes too early",
        (Edit(_PLAN, " and (tp, offset) not in self._dead", ""),),
        _PLANNED,
    ),
    Fault(
        "a redrive sends dead letters of other groups",
        (
            Edit(
                _REDRIVE,
                "(letter.group, letter.record.tp.topic) != (w.group, w.topic)",
                "letter.record.tp.topic != w.topic",
            ),
        ),
        _REDRIVEN,
    ),
)
