"""Faults between the user and the coordinator: options that do not reach it, codes that the user does not see."""

from mutants.fault import Edit, Fault

_WIRING = "spark_coop_source/driver/wiring.py"
_AT_WORK = ("tests/end_to_end/test_options_at_work.py",)
_AT_WIRING = ("tests/spark_coop_source/driver/test_wiring.py",)
_CODES = ("tests/end_to_end/test_codes_in_spark.py",)


def _ignored(option: str, old: str, new: str, tests: tuple[str, ...]) -> Fault:
    return Fault(f"the option {option} does not reach the coordinator", (Edit(_WIRING, old, new),), tests)


FAULTS = (
    _ignored("assignor", "registry.assignors(options.assignor)", 'registry.assignors("grouped")', _AT_WORK),
    _ignored("memberLabels", "for name, value in options.labels.items()", "for name, value in ()", _AT_WORK),
    Fault(
        "the option capacity has no effect",
        (
            Edit(
                "spark_coop_source/options/options.py",
                'capacity=parsed.capacity if "capacity" in parsed.given else slots',
                "capacity=slots",
            ),
        ),
        ("tests/spark_coop_source/options/test_options.py",),
    ),
    _ignored("sharing=partitions", 'sharing=options.sharing != "partitions"', "sharing=True", _AT_WORK),
    _ignored("sharing=required", 'demanding=options.sharing == "required"', "demanding=False", _CODES),
    _ignored("sharing=never", 'alone=options.sharing == "never"', "alone=False", _AT_WIRING),
    _ignored("that a member obeys", "        **part_of(options, MemberOptions),\n", "", _AT_WIRING),
    Fault(
        "an error with a code does not show its number",
        (Edit("coordinator/errors/policies.py", "{self.name}: code {self.code}: ", "{self.name}: "),),
        ("tests/coordinator/errors/test_errors.py",),
    ),
    Fault(
        "the event of a refused assignment lacks its code",
        (Edit("coordinator/assignment/assigning.py", "line(error.headline)", "line(error.what)"),),
        ("tests/coordinator/assignment/test_assigning.py",),
    ),
    Fault(
        "a module of the user that is called coordinator is imported as ours",
        (Edit("spark_coop_source/__init__.py", "\n\n_check_that_nothing_hides_us()\n", "\n"),),
        ("tests/spark_coop_source/test_public_names.py",),
    ),
    Fault(
        "a container's limit is no limit of slots",
        (Edit("spark_coop_source/options/cores.py", "min(named, ceil(limit(control_group)))", "named"),),
        ("tests/spark_coop_source/options/test_cores.py",),
    ),
    Fault(
        "a driver whose first port is taken hears no task",
        (
            Edit(
                "spark_coop_source/driver/task_server.py",
                "            return _Server(of, family, port)",
                "            return _Server(of, family, ports[0])",
            ),
            Edit("spark_coop_source/driver/task_server.py", "return _Server(of, family, ports[-1])", "raise OSError"),
        ),
        ("tests/spark_coop_source/driver/test_task_server.py",),
    ),
    Fault(
        "the login of the sentinels goes to the servers, which refuse it",
        (Edit("coordinator/redis/sentinel_urls.py", "if not a.startswith(_OF_SENTINELS)]", "]"),),
        ("tests/coordinator/redis/test_sentinel_urls.py",),
    ),
    Fault(
        "an error of the user's credential_provider is a bare traceback",
        (Edit("coordinator/redis/credentials.py", "except FAILURES as error:", "except ZeroDivisionError as error:"),),
        ("tests/coordinator/redis/test_credentials.py",),
    ),
    Fault(
        "a token serves beyond its end",
        (Edit("coordinator/kafka/tokens.py", "if self._now_s() >= self._renew_at_s:", "if not self._token:"),),
        ("tests/coordinator/kafka/test_tokens.py",),
    ),
    Fault(
        "a small driver starves a large cluster in silence",
        (Edit("spark_coop_source/driver/task_server.py", "if self._guessed_slots is not None and", "if False and"),),
        ("tests/spark_coop_source/driver/test_task_server.py",),
    ),
)
