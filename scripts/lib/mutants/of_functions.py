"""Faults of the function inside the read: keys that fail, and where they end."""

from mutants.fault import Edit, Fault

_FOLDER = "spark_coop_source/function/"
_WORK, _DECISIONS, _ATTEMPTS, _CALL = (
    f"{_FOLDER}{name}.py" for name in ("keyed_work", "decisions", "attempts", "call")
)
_TESTS = ("tests/spark_coop_source/function/test_decisions.py", "tests/spark_coop_source/function/test_attempts.py")


def _fault(name: str, path: str, old: str, new: str) -> Fault:
    return Fault(name, (Edit(path, old, new),), _TESTS)


FAULTS = (
    _fault(
        "records before the one that fails are called again",
        _ATTEMPTS,
        "            at += answer.before\n",
        "",
    ),
    _fault(
        "rows of the records before the one that fails are lost",
        _CALL,
        "raise EndsAt(len(done), self._joined(done, batch), error) from None",
        "raise EndsAt(len(done), None, error) from None",
    ),
    _fault(
        "a slow key is called on when the time of the task is over",
        _CALL,
        "        if done and self._over():\n",
        "        if done and self._over() and len(done) > 500:\n",
    ),
    _fault(
        "a task whose time is over reads not even one record of a key",
        _CALL,
        "        if done and self._over():\n",
        "        if self._over():\n",
    ),
    _fault(
        "the record that the function names is the next one",
        _CALL,
        "raise EndsAt(number, before, failed.error) from None",
        "raise EndsAt(number + 1, before, failed.error) from None",
    ),
    _fault(
        "a key that was deferred is called again",
        _WORK,
        "        if _hash(batch) in self._ended:\n            return\n",
        "",
    ),
    _fault(
        "records behind a deferred one go on in the same task",
        _WORK,
        "            behind = self._waiting.pop(_key(job.batch))\n"
        "        self._load -= job.load + BatchesSize.of(behind)",
        "            behind = self._waiting.pop(_key(job.batch))\n"
        "            self._waiting[_key(job.batch)] = []\n"
        "        self._load -= job.load\n"
        "        if behind:\n"
        "            self._workers.begin(Job(behind[0].joined(behind[1:]), BatchesSize.of(behind)))",
    ),
    _fault(
        "a key goes on behind a record that waits for its next attempt",
        _WORK,
        "        if outcome.rest is None:\n            self._go_on(_key(job.batch), [])",
        "        if outcome.rest is None or outcome.error:\n            self._go_on(_key(job.batch), [])",
    ),
    _fault(
        "a record that was skipped is called again", _WORK, "[rest.part(1)] if len(rest.records) > 1", "[rest] if rest"
    ),
    _fault(
        "the rows before a failing record are lost",
        _ATTEMPTS,
        "            return AttemptEnd(tuple(done), batch.part(at), records, answer.error)",
        "            return AttemptEnd((), batch.part(at), records, answer.error)",
    ),
    _fault(
        "a whole call counts as the failing record",
        _ATTEMPTS,
        "        if len(records.records) == 1 or not singly:",
        "        if records:",
    ),
    _fault(
        "attempts of earlier batches do not count",
        _DECISIONS,
        "            before = self.ending.attempts(tp, key_hash, offset)",
        "            before = 0",
    ),
    _fault(
        "a task with nothing else to do waits for all attempts", _WORK, " or (keys.idle and not", " or (False and not"
    ),
    _fault(
        "a task that may not end early ends its keys once it is idle",
        _DECISIONS,
        "        return self.ending is None or self._idle_s <= IDLE_S",
        "        return self._idle_s <= IDLE_S",
    ),
    _fault(
        "an attempt that does not fit is made in the task",
        _DECISIONS,
        "if self.ending is None or delay_ms < self.ending.left_ms:",
        "if self.ending is None or delay_ms >= 0:",
    ),
    _fault(
        "a record that waits when the task ends is forgotten",
        _DECISIONS,
        '        """The time of the task is over before the record\'s next attempt."""\n        if self.ending:',
        '        """The time of the task is over before the record\'s next attempt."""\n        if False:',
    ),
    Fault(
        "the longest work of a task begins last",
        (Edit(f"{_FOLDER}slice_batches.py", "places.get(run[0], len(places))", "-places.get(run[0], len(places))"),),
        ("tests/spark_coop_source/function/test_slice_batches.py",),
    ),
    Fault(
        "one key at a time begins with those that have the most records",
        (Edit(f"{_FOLDER}runner.py", "    if function.concurrency == 1:\n        return by_key\n", ""),),
        ("tests/spark_coop_source/function/test_runner.py",),
    ),
    Fault(
        "output with the names and types of its schema may hold nulls anywhere",
        (Edit(f"{_FOLDER}call.py", "if self._takes_nulls and isinstance", "if isinstance"),),
        ("tests/spark_coop_source/function/test_runner.py",),
    ),
)
