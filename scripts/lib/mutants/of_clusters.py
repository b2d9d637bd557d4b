"""Faults with Kafka clusters that differ from the one before: without topic ids, a replica, a group of another type."""

from mutants.fault import Edit, Fault

_WITHOUT_IDS = ("tests/coordinator/member/test_no_topic_ids.py",)
_COPIED = ("tests/coordinator/member/test_copied_offsets.py", "tests/coordinator/member/test_first_positions.py")
_TAKEN = ("tests/coordinator/member/test_taken_names.py",)
_FETCH = ("tests/spark_coop_source/fetch/test_fetch.py",)
_MATCHING, _MATCHES = "coordinator/kafka/matching.py", ("tests/coordinator/kafka/test_matching.py",)
_OVERRULED = ("tests/coordinator/member/test_overruled_wishes.py",)
_MIRROR = ("tests/coordinator/progress/test_mirror.py",)

_BROKERS = ("tests/coordinator/kafka/test_three_brokers.py",)
_CONNECTION = ("tests/coordinator/kafka/test_connection.py",)
_CODES = ("tests/coordinator/kafka/test_error_codes.py",)
_AWAY = ("tests/spark_coop_source/task/test_brokers_away.py",)
_SILENT = ("tests/coordinator/member/test_silent_leaders.py",)

FAULTS = (
    Fault(
        "the times of records are asked of a leader that any broker names, also a frozen one",
        (Edit("coordinator/kafka/record_times.py", "{tp.topic for tp in stretches}", "()"),),
        ("tests/coordinator/kafka/test_record_times.py",),
    ),
    Fault(
        "a task waits for a frozen leader though another broker leads",
        (
            Edit(
                "spark_coop_source/fetch/fetch.py",
                "internals.leader_of(self._consumer, self._at) != self._looks.leader(self._tp)",
                "False",
            ),
        ),
        _AWAY,
    ),
    Fault(
        "a task fails if no broker answers when its consumer is opened",
        (
            Edit(
                "spark_coop_source/fetch/consumers.py",
                "            patience.wait(error, began, f",
                "            raise error from ValueError(f",
            ),
        ),
        _AWAY,
    ),
    Fault(
        "a task that may end early waits for a first answer for as long as any other",
        (
            Edit(
                "spark_coop_source/task/slice_reader.py",
                "Patience(0 if ends and ends.by_time else task.kafka_max_outage_ms)",
                "Patience(task.kafka_max_outage_ms)",
            ),
        ),
        _AWAY,
    ),
    Fault(
        "a task that may end early waits for a first answer once for each partition",
        (Edit("spark_coop_source/task/readings.py", "            if self._unreached:\n", "            if False:\n"),),
        _AWAY,
    ),
    Fault(
        "a batch whose tasks waited for brokers shows that reading is the bottleneck",
        (Edit("coordinator/member/committing.py", " and not ended.failures.kafka_away:", ":"),),
        ("tests/coordinator/member/test_committing.py",),
    ),
    Fault(
        "the time of a batch whose tasks waited for brokers is a cost",
        (Edit("coordinator/member/apply.py", "judged=not failures.kafka_away", "judged=True"),),
        ("tests/coordinator/member/test_judged_batches.py",),
    ),
    Fault(
        "a task that waited for a broker does not say so",
        (Edit("spark_coop_source/fetch/patience.py", "        self.away = True\n", ""),),
        _AWAY,
    ),
    Fault(
        "a task waits for a leader without a word",
        (Edit("spark_coop_source/fetch/patience.py", "waited_s >= SHORTLY_S and", "False and"),),
        _AWAY,
    ),
    Fault(
        "records are planned of a partition whose leader does not answer",
        (
            Edit(
                "coordinator/member/state.py",
                "return self.silent | unsure(self.low)",
                "return unsure(self.low)",
            ),
        ),
        _SILENT,
    ),
    Fault(
        "a position beyond the last known end of a silent leader counts as lost",
        (Edit("coordinator/member/low_ends.py", "if tp in log.silent}", "if tp in low}"),),
        _SILENT,
    ),
    Fault(
        "a proof after a loss of Redis waits for a silent leader",
        (Edit("coordinator/member/apply.py", "self.log.bounds_now(tuple(epochs))", "self.log.bounds(tuple(epochs))"),),
        _SILENT,
    ),
    Fault(
        "the proof of a silent partition is never checked by another owner (against rule: leader-epoch-facts)",
        (Edit("coordinator/member/recovery.py", "[ReportEnds({}, texts)] if texts else []", "()"),),
        _SILENT,
    ),
    Fault(
        "silent leaders are asked for the ends of leader epochs",
        (Edit("coordinator/member/log_view.py", "log.bounds.keys() - log.silent", "log.bounds.keys()"),),
        ("tests/coordinator/member/test_log_view.py",),
    ),
    Fault(
        "the leader epoch of a silent leader counts as checked",
        (Edit("coordinator/member/losing.py", "if tp not in state.log.silent}, bounds)", "}, bounds)"),),
        ("tests/coordinator/member/test_losing.py",),
    ),
    Fault(
        "under maxLaneLead, a partition is read whose leader has just fallen silent",
        (Edit("coordinator/member/reading.py", "        work = within_lead(work, silent, {})\n", ""),),
        ("tests/coordinator/member/test_event_time.py",),
    ),
    Fault(
        "records beyond the last known end of a silent leader count as of its leader epoch",
        (Edit("coordinator/progress/leader_epochs.py", "and offset <= bounds[tp].end}", "}"),),
        ("tests/coordinator/member/test_leader_epochs.py",),
    ),
    Fault(
        "a partition that its silent leader left without positions gets none once its topic was created again",
        (
            Edit(
                "coordinator/redis/lua/create_positions.lua",
                "(known == id or less(partition, before[topic]))",
                "known == id",
            ),
        ),
        _SILENT,
    ),
    Fault(
        "a run with AvailableNow that waits for others does not read to their targets",
        (Edit("coordinator/member/planning.py", "helps=True", "helps=False"),),
        _SILENT,
    ),
    Fault(
        "other members never learn a target that was late",
        (Edit("coordinator/redis/lua/finish.lua", "      tell_targets()\n", ""),),
        _SILENT,
    ),
    Fault(
        "AvailableNow takes the last known end of a silent leader for the end",
        (Edit("coordinator/member/log_view.py", "targets=targets, late=silent", "targets=ends"),),
        _SILENT,
    ),
    Fault(
        "a new group waits for the beginning of each log",
        (Edit("coordinator/member/first_positions.py", " and tp not in state.log.silent)", ")"),),
        _SILENT,
    ),
    Fault(
        "a partition of a silent leader counts as placed",
        (Edit("coordinator/member/first_positions.py", "frozenset(in_kafka) - unplaced", "frozenset(in_kafka)"),),
        _SILENT,
    ),
    Fault(
        "a member acquires a partition that has no position",
        (
            Edit(
                "coordinator/member/owning.py",
                "frozenset(state.log.partitions) - state",
                "{*state.log.partitions} or state",
            ),
        ),
        _SILENT,
    ),
    Fault(
        "a recovery takes a partition that nobody has placed for lost",
        (Edit("coordinator/redis/lua/recover.lua", "redis.call('EXISTS', keys.stable) == 1", "false"),),
        _SILENT,
    ),
    Fault(
        "new partitions do not wait for an older one that has no position yet",
        (Edit("coordinator/member/growing.py", "state.owning.unplaced & {*older}, ", "(), "),),
        ("tests/coordinator/member/test_growing.py",),
    ),
    Fault(
        "a run ends while the end of a log is not known",
        (Edit("coordinator/member/pacing.py", "bool(state.pace.late or ", "bool("),),
        _SILENT,
    ),
    Fault(
        "nothing says which broker has the log of a partition without a leader",
        (Edit("coordinator/kafka/offsets.py", "no leader; copies on {_copies(session, tp)}", "no leader"),),
        _BROKERS,
    ),
    Fault(
        "a broker that lives again is not looked for",
        (Edit("coordinator/kafka/offsets.py", "        manager.cluster.request_update()\n", ""),),
        _BROKERS,
    ),
    Fault(
        "all brokers are asked for the type of a group",
        (
            Edit(
                "coordinator/kafka/internals.py",
                "list_groups([admin._manager.run(admin._find_coordinator_id, group)])",
                "list_groups()",
            ),
        ),
        _BROKERS,
    ),
    Fault(
        "a slow login at one of several servers counts as a frozen server",
        (
            Edit(
                "coordinator/kafka/connection.py",
                "connection.initializing and connection.broker_version_data is None",
                "connection.initializing",
            ),
        ),
        _CONNECTION,
    ),
    Fault(
        "a controller that moves twice ends a command with a bare error",
        (Edit("coordinator/kafka/connection.py", "raise NotControllerError(str(error)) from None", "raise"),),
        _CONNECTION,
    ),
    Fault(
        "the beginning of a silent log is taken for its own",
        (
            Edit(
                "coordinator/member/log_view.py",
                "if log.beginnings is None and all(found[tp] is not UNSEEN for tp in silent):",
                "if log.beginnings is None:",
            ),
        ),
        ("tests/coordinator/member/test_log_view.py",),
    ),
    Fault(
        "each look waits anew for a frozen leader",
        (Edit("coordinator/kafka/offsets.py", "if key in new or pending[key].is_done:", "if pending:"),),
        _BROKERS,
    ),
    Fault(
        "the dead coordinator of a group is asked for ever",
        (Edit("coordinator/kafka/connection.py", "            internals.forget_coordinators(session.manager)\n", ""),),
        _CODES,
    ),
    Fault(
        "after a broken connection the same broker is asked on the same connection",
        (Edit("coordinator/kafka/connection.py", "row_of(type(error)).anew", "row_of(type(error)) is None"),),
        _CODES,
    ),
    Fault(
        "a look ends the query at an error of a broker's own",
        (Edit("coordinator/kafka/error_codes.py", '"UnknownError",', '"NoSuchError",'),),
        _CODES,
    ),
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
    Fault(
        "offsets copied from another cluster are no group, and no reason to stop",
        (Edit("coordinator/member/first_positions.py", "if status is None and (others :=", "if False and (others :="),),
        _COPIED,
    ),
    Fault(
        "a text of ours that cannot be read counts as a plain consumer's",
        (
            Edit(
                "coordinator/progress/mirror.py",
                "if found and not _METADATA",
                "if found and found[1] != SCHEMA and not _METADATA",
            ),
        ),
        _MIRROR,
    ),
    Fault(
        "a query starts under the name of a share group",
        (Edit("coordinator/member/apply.py", "            self.log.must_hold_offsets(self.settings.group)\n", ""),),
        _TAKEN,
    ),
    Fault(
        "an import takes the name of a share group",
        (Edit("coordinator/tools/moving/importing.py", "        self._log.must_hold_offsets(self._group)\n", ""),),
        _TAKEN,
    ),
    Fault(
        "offsets that Kafka's own tool has set are replaced without a word",
        (
            Edit(
                "coordinator/member/apply.py",
                "                self._tell_overruled(plain(offsets), written)\n",
                "                pass\n",
            ),
        ),
        _OVERRULED,
    ),
    Fault(
        "offsets of a consumer that a group took over stay in Kafka until positions move",
        (Edit("coordinator/member/first_positions.py", "if any(tp not in ours for", "if any(tp not in offsets for"),),
        _OVERRULED,
    ),
    Fault(
        "a full refresh reads only new records, without a word",
        (
            Edit(
                "coordinator/member/first_positions.py",
                "if state.shown.start_used or not held:",
                "if not option or not held:",
            ),
        ),
        _OVERRULED,
    ),
    Fault(
        "a full refresh is no warning if the lease of a dead member is still there",
        (Edit("coordinator/redis/lua/status.lua", "'(' .. ms(now_ms())", "'-inf'"),),
        _OVERRULED,
    ),
    Fault(
        "a record of a hundred megabytes is asked for again and again",
        (
            Edit(
                "spark_coop_source/fetch/consumers.py",
                '    "receive_message_max_bytes": ANSWER_BYTES_MAX,\n',
                "",
            ),
        ),
        _FETCH,
    ),
    Fault(
        "a pattern asks for all topics of the cluster each time",
        (Edit(_MATCHING, "if quick and last.regex", "if False and last.regex"),),
        _MATCHES,
    ),
    Fault(
        "a look at a large cluster comes as often as one at a small cluster",
        (Edit(_MATCHING, "max(LEAST_S, (now - begin) / SHARE)", "LEAST_S"),),
        _MATCHES,
    ),
    Fault(
        "a topic of a pattern that is gone stays until the next look at the cluster",
        (
            Edit(
                _MATCHING,
                "            if known is not None:\n                return known",
                "            return known or []",
            ),
        ),
        _MATCHES,
    ),
    Fault(
        "new topics of a pattern are never seen",
        (Edit(_MATCHING, " and self._clock() < last.until", ""),),
        _MATCHES,
    ),
)
