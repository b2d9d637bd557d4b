"""Faults in joined topics: their owners, their lanes, their tasks, and the ranges that move."""

from mutants.fault import Edit, Fault

_JOINED, _READING = "coordinator/assignment/assignors/joined.py", "coordinator/member/reading.py"
_ASSIGNOR = ("tests/coordinator/assignment/assignors/test_joined.py",)
_ASSIGNING = ("tests/coordinator/member/test_assigning.py",)
_PACKING = "coordinator/plan/packing.py"

FAULTS = (
    Fault(
        "the same keys of joined topics are in two tasks",
        (Edit(_PACKING, "key=lambda w: unit(w[0].topic_partition, joined)", "key=lambda w: w[0].topic_partition"),),
        ("tests/coordinator/plan/test_packing.py",),
    ),
    Fault(
        "the slices of joined topics are compared topic by topic",
        (Edit(_PACKING, "key=lambda w: _hash_order(w[0])", "key=None"),),
        ("tests/coordinator/plan/test_packing.py",),
    ),
    Fault(
        "lanes of joined topics follow the work of one topic",
        (Edit("coordinator/plan/joined_topics.py", "u: overlaid(rows) for", "u: rows[0] for"),),
        ("tests/coordinator/plan/test_joined_topics.py",),
    ),
    Fault(
        "a search for a slow key cuts one of the joined topics",
        (
            Edit(
                "coordinator/plan/cost/knowledge.py", "for partner in of_unit(tp, self._joined)", "for partner in (tp,)"
            ),
        ),
        ("tests/coordinator/plan/cost/test_joined_costs.py",),
    ),
    Fault(
        "a key is read in one joined topic while another member owns it in the other",
        (Edit(_READING, "    (JOINED, _joined),\n", ""),),
        ("tests/coordinator/member/test_reading.py",),
    ),
    Fault(
        "a topic that the query does not read holds its partner up",
        (
            Edit(
                _READING,
                "for t in call.setup.cutting.joined if t in state.log.topics",
                "for t in call.setup.cutting.joined",
            ),
        ),
        ("tests/coordinator/member/test_reading.py",),
    ),
    Fault(
        "a hash that one topic owns may be read",
        (Edit("coordinator/plan/joined_ranges.py", ".filled(WHOLE, 0)", ".filled(WHOLE, None)"),),
        ("tests/coordinator/plan/test_joined_ranges.py",),
    ),
    Fault(
        "a query that reads one of the joined topics owns some of it",
        (Edit(_JOINED, "if self._read(of) == wanted}", "if self._read(of)}"),),
        _ASSIGNOR,
    ),
    Fault(
        "two reads of a query are two owners",
        (Edit(_JOINED, 'm.metadata.get("query") or m.member', "m.member"),),
        _ASSIGNOR,
    ),
    Fault(
        "a new group reads joined topics with unequal numbers of partitions",
        (Edit("coordinator/plan/joined_topics.py", "if len(set(counts.values())) > 1:", "if False:"),),
        ("tests/coordinator/plan/test_joined_topics.py",),
    ),
    Fault(
        "a joined topic that grew first is read at once",
        (
            Edit(
                "coordinator/plan/joined_topics.py", "_first(topic, most) if name in counts", "topic if name in counts"
            ),
        ),
        ("tests/coordinator/plan/test_joined_topics.py", "tests/coordinator/member/test_joined_members.py"),
        schedules=300,
    ),
    Fault(
        "new partitions of a joined topic have an owner before those of the others",
        (Edit(_JOINED, "least if topic in topics else count", "count"),),
        (*_ASSIGNOR, *_ASSIGNING),
    ),
    Fault(
        "a joined topic promises order across growths that waited",
        (Edit("coordinator/redis/lua/create_positions.lua", "A.joined[topic] or is_late", "is_late"),),
        ("tests/coordinator/redis/test_growth.py",),
    ),
    Fault(
        "policies of joined topics differ",
        (
            Edit(
                "coordinator/member/assigning.py",
                "policy, assignor = policy.joined(joined), _inf",
                "policy, assignor = policy, _inf",
            ),
        ),
        _ASSIGNING,
    ),
    Fault(
        "the option copartition does not reach the planner",
        (Edit("spark_coop_source/driver/wiring.py", "joined=options.copartition", "joined=()"),),
        ("tests/spark_coop_source/options/test_copartition.py",),
    ),
    Fault(
        "the option copartition does not reach the group",
        (Edit("spark_coop_source/driver/wiring.py", "if options.copartition else", "if not options.assignor else"),),
        ("tests/spark_coop_source/options/test_copartition.py",),
    ),
    Fault(
        "two reads of one topic are members of one group",
        (
            Edit(
                "coordinator/redis/replies.py",
                "for topic in self.topics] if self.topics else names",
                "for topic in ()]",
            ),
        ),
        ("tests/coordinator/member/test_life.py",),
    ),
    Fault(
        "a read of an unknown query joins for a part of the joined topics",
        (Edit("coordinator/member/life.py", "if call.setup.partial and not", "if False and not"),),
        ("tests/coordinator/member/test_life.py",),
    ),
    Fault(
        "AvailableNow of two reads waits for ever",
        (Edit("coordinator/member/growing.py", "    if call.setup.partial:\n", "    if False:\n"),),
        ("tests/coordinator/member/test_growing.py",),
    ),
)
