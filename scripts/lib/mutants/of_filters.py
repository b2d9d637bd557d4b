"""Faults in the record filter: its rows, its agreement in a group, its count."""

from mutants.fault import Edit, Fault

_SELECT, _JOIN = "spark_coop_source/select/filtering.py", "coordinator/redis/lua/join.lua"
_READINGS, _PUSHED = "spark_coop_source/task/readings.py", "spark_coop_source/driver/pushed_filters.py"
_ROWS = ("tests/spark_coop_source/select/test_filtering.py",)
_READ = ("tests/spark_coop_source/task/test_filtered_read.py",)
_GROUP = ("tests/coordinator/member/test_filters.py",)

FAULTS = (
    Fault(
        "keys are compared by hash only",
        (
            Edit(
                _SELECT,
                "_booleans(pc.is_in(keys.take(likely), value_set=self._values))",
                "np.ones(len(likely), np.bool_)",
            ),
        ),
        _ROWS,
    ),
    Fault(
        "a denied list drops records without a key",
        (
            Edit(
                _SELECT,
                "mask &= ~self._deny.named(chunk.keys, hashes)",
                "mask &= ~self._deny.named(chunk.keys, hashes) & ~chunk.keys.nulls",
            ),
        ),
        _ROWS,
    ),
    Fault(
        "the largest size is exclusive",
        (Edit(_SELECT, "(sizes <= self._sizes[1])", "(sizes < self._sizes[1])"),),
        _ROWS,
    ),
    Fault(
        "hashes below the first range pass",
        (Edit(_SELECT, "            mask &= self._los[0] <= hashes\n", ""),),
        _ROWS,
    ),
    Fault(
        "shared blocks hold filtered records",
        (
            Edit(
                _READINGS,
                "        chosen = self._filter.chosen(of, rows)\n",
                "        chosen = Chosen(of, np.ones(len(chunk), np.bool_), rows, 0)\n",
            ),
        ),
        _READ,
    ),
    Fault(
        "records that a publisher drops are not counted",
        (Edit(_READINGS, "        self.filtered[tp] += chosen.dropped\n        return", "        return"),),
        _READ,
    ),
    Fault(
        "a member joins beside another filter",
        (Edit(_JOIN, "(refiltered or reordered) and", "reordered and"),),
        _GROUP,
        schedules=300,
    ),
    Fault(
        "a batch is replayed with another filter",
        (
            Edit(
                "coordinator/member/authorizing.py",
                "    refuse_other_filter(part, call)\n",
                "",
            ),
        ),
        _GROUP,
        schedules=300,
    ),
    Fault(
        "an offset does not name its filter",
        (
            Edit(
                "coordinator/member/planning.py",
                "filter=call.setup.settings.filter.digest, founding",
                "founding",
            ),
        ),
        _GROUP,
        schedules=300,
    ),
    Fault(
        "a filter after an offset includes it",
        (Edit(_PUSHED, "Interval(least=value + 1)", "Interval(least=value)"),),
        ("tests/spark_coop_source/driver/test_pushed_filters.py",),
    ),
)
