"""Faults in batches whose tasks end their slices early: one for each rule of true ends."""

from mutants.fault import Edit, Fault

_AUTHORIZING = "coordinator/member/authorizing.py"
_INBOX = "coordinator/member/inbox.py"

FAULTS = (
    Fault(
        "the last task does not wait for the seal (against rule: seal-before-sink)",
        (
            Edit(
                "coordinator/member/service.py",
                "        elif ended.whole is not None:\n            self._seal(",
                "        elif False:\n            self._seal(",
            ),
        ),
        schedules=300,
    ),
    Fault(
        "a replay of a sealed batch ends where its tasks like (against rule: replay-fixed)",
        (Edit(_AUTHORIZING, "ends=answer.ends, unknown", "ends=None, unknown"),),
        schedules=300,
    ),
    Fault(
        "the last end of a task counts (against rule: first-end-wins)",
        (
            Edit(
                _INBOX,
                "            agreed = batch.ends.setdefault(task, ends)\n",
                "            batch.ends[task] = agreed = ends\n",
            ),
        ),
        schedules=300,
    ),
    Fault(
        "a batch whose seal is lost counts as read (against rule: unknown-is-beginning)",
        (
            Edit(
                "coordinator/member/committing.py",
                "    return unread(mine) if sealed.ends is None else ended(mine, sealed.ends)",
                "    return ended(mine, sealed.ends or {})",
            ),
            Edit("coordinator/member/batch.py", "            return unread(part)", "            return part"),
        ),
        ("tests/coordinator/member/test_committing.py",),
        schedules=300,
    ),
    Fault(
        "a replay whose seal is lost begins anew (against rule: unknown-is-beginning)",
        (Edit(_AUTHORIZING, "unknown=answer.unknown", "unknown=False"),),
        ("tests/coordinator/member/test_authorizing.py",),
        schedules=300,
    ),
    Fault(
        "a batch is sealed by all of its tasks, though some may not reach the driver",
        (Edit(_AUTHORIZING, "early and seen.of(ReadReach()) is not Reach.ALL", "False"),),
        ("tests/coordinator/member/test_authorizing.py",),
    ),
    Fault(
        "an early end is not sealed where other tasks may not reach the driver",
        (Edit("coordinator/member/service.py", "            if ended.early:\n", "            if False:\n"),),
        ("tests/coordinator/member/test_service.py",),
        schedules=300,
    ),
    Fault(
        "the seal of a task replaces those of other tasks",
        (Edit("coordinator/redis/lua/seal.lua", "'seal', seal .. A.ends)", "'seal', A.ends)"),),
        ("tests/coordinator/redis/test_store.py",),
    ),
    Fault(
        "a task whose end the driver waits for reads all of its slices without it",
        (Edit("spark_coop_source/task/slice_reader.py", "(link.connected or ending.required)", "link.connected"),),
        ("tests/spark_coop_source/task/test_read.py",),
    ),
    Fault(
        "tasks end early though none reaches the driver",
        (Edit("coordinator/member/planning.py", " and seen.of(ReadReach()) is not Reach.NONE:", ":"),),
        ("tests/coordinator/member/test_planning.py",),
    ),
    Fault(
        "lanes read more than fits the budget though tasks do not end by the clock",
        (Edit("coordinator/member/reading.py", "seen.of(ReadReach()) is Reach.ALL", "True"),),
        ("tests/coordinator/member/test_reading.py",),
    ),
    Fault(
        "a batch that read nothing is planned again under the same offset",
        (Edit("coordinator/member/planning.py", "start.early + 1 if again else 1", "1"),),
        schedules=100,
    ),
    Fault(
        "the replay of an unsealed batch is sealed as planned",
        (
            Edit(
                "coordinator/redis/lua/authorize.lua",
                "local planned = A.as_planned and (seal or not same)",
                "local planned = A.as_planned",
            ),
        ),
        ("tests/coordinator/redis/test_store.py",),
    ),
    Fault(
        "a task that reads to agreed ends takes whole lanes from the cache (against rule: replay-fixed)",
        (Edit("spark_coop_source/task/slice_reader.py", ", sharing=None)", ")"),),
        ("tests/end_to_end/test_early_ends.py",),
    ),
    Fault(
        "a task whose driver takes no ends reads to planned ends (against rule: seal-before-sink)",
        (
            Edit(
                "spark_coop_source/task/slice_reader.py",
                "        if task.ending and task.ending.required:",
                "        if False:",
            ),
        ),
        ("tests/spark_coop_source/task/test_read.py",),
    ),
    Fault(
        "a start that comes again counts as read to its planned ends",
        (
            Edit(
                "coordinator/member/committing.py",
                "    if start != commits.confirmed:  # else its true ends are known\n",
                "    if True:\n",
            ),
        ),
        ("tests/coordinator/member/test_committing.py",),
    ),
    Fault(
        "records that the function did not get count as worked on",
        (
            Edit(
                "spark_coop_source/telemetry/meter.py",
                "left = dict(self._unworked) if self._with_function",
                "left = {} if True",
            ),
        ),
        ("tests/spark_coop_source/telemetry/test_meter.py",),
    ),
)
