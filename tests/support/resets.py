"""The command `reset-offsets` on the servers of a group, and the reset epoch that it leaves."""

from command_runs import Run
from group_services import Group


def reset(run: Run, members: Group, *arguments: str) -> tuple[object, str, str]:
    place = ("--redis", members.redis_url, "--bootstrap-server", members.kafka.bootstrap)
    return run("reset-offsets", members.name, *place, *arguments)


def reset_epoch(members: Group) -> int:
    return int(members.state.meta["reset_epoch"])
