"""Which application a driver is: one name for its queries, another for every other driver."""

import os
import subprocess
import sys

import pytest

from coordinator.redis.keys import GroupKeys
from spark_coop_source.driver.identity import application
from store_world import SESSION, World

NAME = "import os; from spark_coop_source.driver.identity import application; print(application('driver', os.getpid()))"
UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc", "--map-root-user")


def named_in_a_container() -> str:
    """The name of a driver that is alone in its container, with a host name that others have too."""
    done = subprocess.run(
        [*UNSHARE, sys.executable, "-c", NAME], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def test_the_queries_of_one_driver_are_one_application() -> None:
    driver = os.getpid()
    assert application("host", driver) == application("host", driver)
    assert application("host", driver).startswith(f"host/{driver}/")


def test_drivers_with_one_host_name_and_process_id_are_two_applications() -> None:
    try:
        subprocess.run([*UNSHARE, "true"], capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this host lets nobody make a process namespace")
    one, two = named_in_a_container(), named_in_a_container()
    assert one.rpartition("/")[0] == two.rpartition("/")[0] == "driver/1", "what people see is the same"
    assert one != two


def test_each_spark_application_of_one_driver_has_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without /proc, Spark's own folder names the application."""
    names = set()
    for folder in ("/tmp/blockmgr-1", "/tmp/blockmgr-2"):
        monkeypatch.setenv("SPARK_LOCAL_DIRS", folder)
        names.add(application("host", 2**30))
    assert len(names) == 2


def test_applications_that_have_ended_leave_no_name_in_redis(world: World) -> None:
    world.found()
    for life in ("i1", "i2"):
        world.join("m-1", life, application=f"driver of {life}")
    two = world.join("m-2", "i1", application="another driver")
    applications = GroupKeys(world.group).applications
    assert world.redis.hgetall(applications) == {"driver of i2": "m-1", "another driver": "m-2"}
    world.store.members.leave(two, {})
    world.now += SESSION + 1
    world.join("m-3", "i1", application="the next driver")
    assert world.redis.hgetall(applications) == {"driver of i2": "m-1", "the next driver": "m-3"}
