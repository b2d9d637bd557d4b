"""Faults with Kafka clusters that differ from the one before: without topic ids, a replica, a group of another type."""

from mutants.fault import Edit, Fault

_WITHOUT_IDS = ("tests/coordinator/member/test_no_topic_ids.py",)

FAULTS = (
    Fault(
        "a broker without topic ids makes texts that no reader takes",
        (
            Edit(
                "coordinator/kafka/offsets.py",
                "NO_ID if found in _NO_IDS else found",
                '"" if found in _NO_IDS else found',
            ),
        ),
        _WITHOUT_IDS,
    ),
    Fault(
        "a broker without topic ids is not mentioned",
        (Edit("coordinator/kafka/log.py", "        self._warn_without_ids(topics)\n", ""),),
        _WITHOUT_IDS,
    ),
)
