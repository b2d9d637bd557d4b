"""Our error is found in the text of what Spark raises. `end_to_end/test_codes_in_spark.py` asks Spark itself."""

import traceback

import pytest

from coordinator.errors import CoopKafkaError, FencedMemberError, FunctionFailedError, UnknownTopicError
from spark_coop_source.errors_in_spark import error_of

KINDS: list[type[CoopKafkaError]] = [CoopKafkaError]
for kind in KINDS:
    KINDS.extend(kind.__subclasses__())  # also of those that are found here

JAVA = "[STREAM_FAILED] Query [id = 1] terminated: Traceback:\n{}\n\tat org.apache.spark.Task.run\n"


def in_spark(error: CoopKafkaError) -> Exception:
    """What Spark makes of an error in a process of Python."""
    try:
        raise error
    except CoopKafkaError:
        return RuntimeError(JAVA.format(traceback.format_exc()))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("what", ["a topic: t. gone", "it ended: code 7: no"])
def test_an_error_is_found_with_its_class_and_its_words(kind: type[CoopKafkaError], what: str) -> None:
    error = kind(what, "do this: then that")
    found = error_of(in_spark(error))
    assert (type(found), str(found)) == (kind, str(error))
    assert found is not None
    assert (found.what, found.remedy, found.name) == (what, "do this: then that", kind.name)


def test_an_error_without_a_remedy() -> None:
    found = error_of(in_spark(CoopKafkaError("all went wrong")))
    assert (str(found), found and found.remedy) == ("COOP_KAFKA_ERROR: all went wrong.", "")


def test_an_error_with_the_frames_of_a_function() -> None:
    error = FunctionFailedError(
        "the function raised KeyError, called with a-0:\n\n  File 'job.py', line 7\nKeyError: 1\n", "mend it"
    )
    found = error_of(in_spark(error))
    assert (type(found), found and found.remedy) == (FunctionFailedError, "mend it")
    assert "line 7\nKeyError: 1" in str(found)


def test_of_several_errors_the_last_one_ended_the_query() -> None:
    text = f"{in_spark(UnknownTopicError('no topic', 'create it'))}\n{in_spark(FencedMemberError('fenced', 'restart'))}"
    assert type(error_of(RuntimeError(text))) is FencedMemberError


@pytest.mark.parametrize(
    "raised", [None, ValueError("UNKNOWN_TOPIC: not ours"), RuntimeError("coordinator.errors.x.Y: Z: ")]
)
def test_other_exceptions_are_none_of_ours(raised: BaseException | None) -> None:
    assert error_of(raised) is None


def test_an_error_that_spark_has_not_touched_is_itself() -> None:
    error = FencedMemberError("fenced", "restart")
    assert error_of(error) is error
