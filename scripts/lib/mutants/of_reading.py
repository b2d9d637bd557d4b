"""Faults on Spark's side: the reader's life, tasks, hashes, and the records of a slice."""

from mutants.fault import Edit, Fault

_READER, _LANES = "spark_coop_source/driver/stream_reader.py", "spark_coop_source/select/lanes.py"
_READINGS = "spark_coop_source/task/readings.py"
_NEEDED, _FETCH = "spark_coop_source/fetch/needed.py", "spark_coop_source/fetch/fetch.py"
_BYTES = ("tests/spark_coop_source/fetch/test_needed.py",)
_LEFTOVERS = "spark_coop_source/cache/leftovers.py"
_SWEPT = ("tests/spark_coop_source/cache/test_leftovers.py",)
_CALLS, _READ = (
    ("tests/spark_coop_source/driver/test_stream_reader.py",),
    ("tests/spark_coop_source/task/test_read.py",),
)

FAULTS = (
    Fault(
        "the reader joins when it is constructed",
        (
            Edit(
                _READER,
                "        self._session: StreamSession | RedundantSession | None = None\n",
                "        from spark_coop_source.driver.reader_process import GroupSession\n"
                "        self._session: StreamSession | RedundantSession | None = GroupSession(options)\n"
                "        self._session.next_offset(StreamOffset(options.group), Limits())\n",
            ),
        ),
        _CALLS,
    ),
    Fault(
        "initialOffset joins",
        (
            Edit(
                "spark_coop_source/driver/reader_process.py",
                "        self._service.first_positions()\n",
                "        self._service.first_positions()\n        self._service.heartbeat_now()\n",
            ),
        ),
        _CALLS,
    ),
    Fault(
        "commit() commits",
        (
            Edit(
                _READER,
                '        """Nothing: Spark calls it late,',
                "        self._open().next_offset(StreamOffset.from_json(end), Limits())\n"
                '        """Nothing: Spark calls it late,',
            ),
        ),
        _CALLS,
    ),
    Fault(
        "a batch is end minus start",
        (
            Edit(
                _READER,
                "        tasks = session.tasks(self._parsed(end))\n",
                "        from dataclasses import replace\n"
                "        begun = {(tp, x.hashes): x for tp, x in StreamOffset.from_json(start)} if start else {}\n"
                "        new = lambda tp, x: begun.get((tp, x.hashes)) != x\n"
                "        whole = self._parsed(end)\n"
                "        lanes = {tp: tuple(x for x in of if new(tp, x)) for tp, of in whole.lanes.items()}\n"
                "        tasks = session.tasks(replace(whole, lanes=lanes))\n",
            ),
        ),
        _CALLS,
    ),
    Fault(
        "a signal interrupts a leave",
        (Edit("spark_coop_source/driver/reader_process.py", "        let_nothing_interrupt()\n", ""),),
        _CALLS,
    ),
    Fault(
        "slices of one key are in several tasks",
        (Edit("coordinator/plan/packing.py", "if bundle and s.hashes.lo > highest:", "if bundle:"),),
        ("tests/coordinator/plan/test_packing.py",),
    ),
    Fault(
        "slices of one task come in no order",
        (
            Edit(
                "coordinator/plan/packing.py",
                'attrgetter("topic_partition", "offsets.start", "hashes.lo")',
                'attrgetter("topic_partition", "hashes.lo")',
            ),
        ),
        ("tests/coordinator/plan/test_packing.py",),
    ),
    Fault(
        "the last hash of a lane is left out",
        (Edit(_LANES, "(of.hashes <= s.hashes.hi)", "(of.hashes < s.hashes.hi)"),),
        _READ,
    ),
    Fault(
        "the first offset after a slice is delivered too",
        (Edit(_LANES, "(chunk.offsets < s.offsets.until)", "(chunk.offsets <= s.offsets.until)"),),
        _READ,
    ),
    Fault(
        "a record that no task here reads goes to the last part",
        (Edit(_LANES, "    numbers[hashes > np.array([part.hi for part in parts])[numbers]] = len(parts)\n", ""),),
        ("tests/spark_coop_source/select/test_lanes.py",),
    ),
    Fault(
        "records of a part are in no order",
        (Edit(_LANES, 'np.argsort(few, kind="stable")', "np.lexsort((-np.arange(len(few)), few))"),),
        ("tests/spark_coop_source/select/test_lanes.py",),
    ),
    Fault(
        "lanes of one task are not put in the order of offsets",
        (Edit(_READINGS, 'joined.take(numbers(np.argsort(offsets_of(joined), kind="stable")))', "joined"),),
        ("tests/spark_coop_source/task/test_shared_read.py",),
    ),
    Fault(
        "records without a key are all in one lane",
        (Edit("spark_coop_source/select/hashing.py", "    if len(nulls):\n", "    if False:\n"),),
        ("tests/spark_coop_source/select/test_hashing.py",),
    ),
    Fault(
        "the hash has 64 bits, half of them beyond the hash space",
        (Edit("spark_coop_source/select/hashing.py", "(hashes >> np.uint64(1))", "hashes"),),
        ("tests/spark_coop_source/select/test_hashing.py",),
    ),
    Fault(
        "the log behind a stretch is requested too",
        (Edit(_NEEDED, "for at, offsets in missing.items() if offsets > 0]", "for at in missing]"),),
        _BYTES,
    ),
    Fault(
        "each request has as many bytes as it may have",
        (Edit(_NEEDED, "min(size, self._most)", "self._most"),),
        _BYTES,
    ),
    Fault(
        "the cut record batch at the end of a stretch is not requested",
        (
            Edit(
                _NEEDED, "ceil(offsets * self.batches / self.offsets) + MARGIN", "offsets * self.batches / self.offsets"
            ),
        ),
        _BYTES,
    ),
    Fault(
        "aborted transactions are fetched in small pieces",
        (Edit(_NEEDED, "if records else None", "if records else self._seen.get(at, BatchSizes(1, 1, 1))"),),
        _BYTES,
    ),
    Fault(
        "a task forgets the sizes of the last task",
        (Edit(_NEEDED, "_seen.setdefault(consumer, {})", "{}"),),
        _BYTES,
    ),
    Fault(
        "sizes are learned from no answer",
        (Edit(_FETCH, "            self._needed.saw(self._at, records)\n", "            pass\n"),),
        _BYTES,
    ),
    Fault(
        "the answers of several stretches go on beyond them",
        (
            Edit(
                "spark_coop_source/fetch/several.py",
                "stretches[tp].until for at, tp in",
                "stretches[tp].until * 100 for at, tp in",
            ),
        ),
        _BYTES,
    ),
    Fault(
        "blocks stay where no task of their host reads them",
        (Edit(_LEFTOVERS, "changed[stretch] <= before and", "changed[stretch] > before and"),),
        _SWEPT,
    ),
    Fault(
        "a sweeper removes blocks that a slow task reads",
        (Edit(_LEFTOVERS, "        fcntl.flock(fd, fcntl.LOCK_SH)\n", ""),),
        _SWEPT,
    ),
)
