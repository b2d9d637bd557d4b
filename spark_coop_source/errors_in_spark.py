"""Finds our error in what Spark raises: Spark passes exceptions of Python processes on as text.

    org.apache.spark...: Traceback (most recent call last):
      ...
    coordinator.errors.group.FencedMemberError: FENCED_MEMBER: the member ... . Remedy: ...
        at org.apache.spark...

Runs in the user's driver. Knows the form of an error's text; nothing of Spark.
"""

import re

from coordinator.errors import CoopKafkaError

_RAISED = re.compile(r"\bcoordinator\.errors\.\w+\.(\w+): [A-Z0-9_]+: (?:code \d+: )?")
_REMEDY = ". Remedy: "


def error_of(raised: BaseException | None) -> CoopKafkaError | None:
    """Our error behind an exception that `query.awaitTermination()` raises or `query.exception()` returns.

    None if the exception has another cause. The error has our class, so it has `name`, `retriable`, `what`, `remedy`,
    and for a policy or a limit `code`.
    """
    if raised is None or isinstance(raised, CoopKafkaError):
        return raised
    text, classes = str(raised), {kind.__name__: kind for kind in _kinds(CoopKafkaError)}
    found = [match for match in _RAISED.finditer(text) if match[1] in classes]
    if not found:
        return None
    what, cut, rest = text[found[-1].end() :].partition(_REMEDY)
    lines = (rest if cut else what).splitlines()
    first = lines[0].removesuffix(".") if lines else ""
    return classes[found[-1][1]](*((what, first) if cut else (first,)))


def _kinds(kind: type[CoopKafkaError]) -> set[type[CoopKafkaError]]:
    return {kind}.union(*map(_kinds, kind.__subclasses__()))
