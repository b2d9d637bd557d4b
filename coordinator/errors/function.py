"""The errors of a user's function inside the read."""

from coordinator.errors.base import CoopKafkaError


class FunctionError(CoopKafkaError):
    """Any error of the function inside the read."""

    name = "FUNCTION_ERROR"


class FunctionFailedError(FunctionError):
    """The function raised an exception, or made rows that do not fit its schema."""

    name = "FUNCTION_FAILED"
    usual_remedy = "fix the function; a restarted query reads the same records again"


class TooManyFailingKeysError(FunctionError):
    """AvailableNow cannot end: a partition holds `maxDeferredKeys` quarantined keys, so no other key of it is read."""

    name = "TOO_MANY_FAILING_KEYS"
    usual_remedy = "fix the function or what it needs, then run coop-kafka release; or raise maxDeferredKeys"
