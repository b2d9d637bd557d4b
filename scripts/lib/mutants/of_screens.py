"""Faults of the page in a browser and of the screen of `coop-kafka top`."""

from mutants.fault import Edit, Fault

_UI, _APPLICATION = "coordinator/tools/cli/ui_command.py", "coordinator/tools/page/application.py"
_LISTENING = "coordinator/tools/cli/listening.py"
_LOOKS, _FACTS = "coordinator/tools/page/looks.py", "coordinator/tools/page/facts.py"
_SCREEN, _PLANE = "coordinator/tools/cli/top_screen.py", "coordinator/tools/operations/plane_text.py"
_ASKED, _COMMAND = (
    ("tests/coordinator/tools/page/test_application.py",),
    ("tests/coordinator/tools/cli/test_ui_command.py",),
)
_LOOKED, _SHOWN = ("tests/coordinator/tools/page/test_looks.py",), ("tests/coordinator/tools/page/test_facts.py",)
_DRAWN = ("tests/coordinator/tools/operations/test_plane_text.py",)
_ON_TERMINAL = ("tests/coordinator/tools/cli/test_top_screen.py",)

FAULTS = (
    Fault(
        "Ctrl-C may come while the wait holds the lock that its handler takes: the command hangs",
        (
            Edit(_LISTENING, "came: SimpleQueue[int] = SimpleQueue()", "came: Queue[int] = Queue()"),
            Edit(_LISTENING, "from queue import SimpleQueue", "from queue import Queue"),
        ),
        ("tests/coordinator/tools/cli/test_listening.py",),
    ),
    Fault(
        "every host may open the page",
        (Edit(_UI, "if not (local or allow_remote):", "if not (local or allow_remote) and not host:"),),
        _COMMAND,
    ),
    Fault(
        "any IPv4 address counts as the loopback",
        (Edit(_UI, "ipaddress.ip_address(host).is_loopback", "ipaddress.ip_address(host).version == 4"),),
        _COMMAND,
    ),
    Fault(
        "the page answers under any name, so another site may read it (DNS rebinding)",
        (Edit(_APPLICATION, "allowed_hosts=[*hosts]", 'allowed_hosts=["*"]'),),
        _ASKED,
    ),
    Fault(
        "answers do not forbid the browser other hosts",
        (Edit(_APPLICATION, "return JSONResponse(value, status, HEADERS)", "return JSONResponse(value, status)"),),
        _ASKED,
    ),
    Fault(
        "Redis away is a 404, as if the group were gone",
        (Edit(_APPLICATION, "_UNAVAILABLE, _REFUSED = 503, 404", "_UNAVAILABLE, _REFUSED = 404, 404"),),
        _ASKED,
    ),
    Fault(
        "each browser reads Redis itself",
        (Edit(_LOOKS, "self.clock() - at >= FRESH_S", "self.clock() - at >= 0"),),
        _LOOKED,
    ),
    Fault(
        "the lag over time grows for ever",
        (Edit(_LOOKS, "deque(maxlen=POINTS)", "deque()"),),
        _LOOKED,
    ),
    Fault(
        "a Kafka that is away hides the group",
        (
            Edit(
                _LOOKS,
                "except CoopKafkaError as error:\n            return replace(look, trouble=error.headline)",
                "except OSError:\n            return look",
            ),
        ),
        _LOOKED,
    ),
    Fault(
        "partitions come in the order of their names, so the worst may be missing",
        (Edit("coordinator/tools/operations/views.py", "key=lambda p: (-(p.lag or 0), p.tp)", "key=lambda p: p.tp"),),
        _SHOWN,
    ),
    Fault(
        "a parked key stands behind those that are tried again",
        (Edit(_FACTS, "return not record.parked, -record.attempts", "return record.parked, -record.attempts"),),
        _SHOWN,
    ),
    Fault(
        "lanes of one row are shown by the one furthest ahead",
        (Edit(_PLANE, "lane = min(lanes, key=", "lane = max(lanes, key="),),
        _DRAWN,
    ),
    Fault(
        "the highest hash is below",
        (Edit(_PLANE, "for lanes in reversed(shown)]", "for lanes in shown]"),),
        _DRAWN,
    ),
    Fault(
        "a parked key looks like one that is tried again",
        (Edit(_PLANE, "PARKED if r.parked else TRIED\n", "TRIED\n"),),
        _DRAWN,
    ),
    Fault(
        "a terminal obeys the names of others",
        (Edit(_SCREEN, "table.add_row(*map(line_of, cells))", "table.add_row(*cells)"),),
        _ON_TERMINAL,
    ),
    Fault(
        "a server that does not answer ends the screen",
        (
            Edit(
                _SCREEN,
                "        except CoopKafkaError as error:\n            seen, trouble",
                "        except OSError as error:\n            seen, trouble",
            ),
        ),
        _ON_TERMINAL,
    ),
    Fault(
        "a filter minds capitals",
        (Edit(_SCREEN, 'if words.lower() in " ".join(row[1]).lower()', 'if words in " ".join(row[1])'),),
        _ON_TERMINAL,
    ),
    Fault(
        "the smallest number of a column comes first",
        (Edit(_SCREEN, "key=lambda row: (-_number(row[1][column])", "key=lambda row: (_number(row[1][column])"),),
        _ON_TERMINAL,
    ),
    Fault(
        "a link to a group opens the first one",
        (Edit("coordinator/tools/page/page.js", "names.includes(linked)) by", "names.includes(null)) by"),),
        ("tests/end_to_end/test_page.py",),
    ),
    Fault(
        "a batch runs on after the lease of its member",
        (
            Edit(
                "coordinator/tools/operations/top_view.py",
                "runs_s(m.member, state) if m.lease_left_ms else None",
                "runs_s(m.member, state)",
            ),
        ),
        ("tests/coordinator/tools/cli/test_lane_commands.py",),
    ),
    Fault(
        "`stuck` shows ranges only if no key fails",
        (Edit("coordinator/tools/cli/tables.py", "(struck, strikes)) if found]", "(struck, strikes)) if found][:1]"),),
        ("tests/coordinator/tools/cli/test_lane_commands.py",),
    ),
)
