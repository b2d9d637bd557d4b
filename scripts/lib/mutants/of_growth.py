"""Faults in the growth of topics: new partitions, and their waits for older ones."""

from mutants.fault import Edit, Fault

_GROWTH, _GROWING = "coordinator/progress/growth.py", "coordinator/member/growing.py"
_ORDER = ("tests/coordinator/progress/test_growth_order.py",)

FAULTS = (
    Fault(
        "new partitions go by a low watermark of an older one",
        (Edit(_GROWING, "    if unsure(low):\n", "    if not low and unsure(low):\n"),),
        ("tests/coordinator/member/test_growing.py",),
    ),
    Fault(
        "new partitions wait only where a topic grew to a multiple",
        (Edit(_GROWING, "if g.gated and (g, state.life.nonce)", "if g.kept and (g, state.life.nonce)"),),
        ("tests/coordinator/member/test_growing.py",),
    ),
    Fault(
        "growth by one partition has no gate, as the simulation sees it",
        (Edit(_GROWING, "if g.gated and (g, state.life.nonce)", "if g.kept and (g, state.life.nonce)"),),
        schedules=600,
    ),
    Fault(
        "a new partition waits for one older partition only, as if the hash named it",
        (
            Edit(
                _GROWTH,
                "    return reduce(_lower, of_each, ((0, OPEN),))\n",
                "    return next(iter(of_each), ((0, OPEN),))\n",
            ),
        ),
        _ORDER,
    ),
    Fault(
        "a second growth waits only for the partitions from before the first",
        (
            Edit(
                _GROWTH,
                "return tuple(TopicPartition(self.topic, p) for p in range(self.old))",
                "return tuple(TopicPartition(self.topic, p) for p in range(min(self.old, 2)))",
            ),
        ),
        _ORDER,
    ),
    Fault(
        "a growth that the group missed holds nothing back",
        (Edit(_GROWTH, "if n == self.old or self.new % n == 0)", "if n == self.old)"),),
        _ORDER,
    ),
    Fault(
        "the mirror forgets growths to no multiple",
        (
            Edit(
                "coordinator/progress/mirror.py",
                "if g.gated and not g.passed(stable)",
                "if g.kept and not g.passed(stable)",
            ),
        ),
        ("tests/coordinator/progress/test_mirror.py",),
    ),
    Fault(
        "an event promises the order of all keys at any growth",
        (
            Edit(
                "coordinator/redis/lua/create_positions.lua",
                "if tonumber(new) % tonumber(old) ~= 0 then",
                "if false then",
            ),
        ),
        ("tests/coordinator/member/test_partition_growth.py",),
    ),
    Fault(
        "a growth that was over before a loss of state stays over",
        (
            Edit(
                _GROWING,
                "(g, state.life.nonce) not in state.growing.over",
                "g not in {over for over, _ in state.growing.over}",
            ),
        ),
        ("tests/coordinator/member/test_growing.py",),
    ),
    Fault(
        "partitions of a new group and of a growth count as mended",
        (
            Edit(
                "coordinator/redis/lua/create_positions.lua",
                "less(partition, before[topic])",
                "less(partition, partitions)",
            ),
        ),
        ("tests/coordinator/redis/test_growth.py",),
    ),
)
