"""A rolling restart of real drivers: nobody waits for the session of a drained one, which is the default one."""

import json

from command_runs import Run
from drivers.fleet import Fleet
from verdict import require

SESSION_S = 45
FLEET = {"options": {"sessionTimeout": str(SESSION_S * 1000), "heartbeatInterval": "3000"}}


def test_a_driver_is_replaced_while_records_arrive_and_no_key_waits_for_a_session(fleet: Fleet, run: Run) -> None:
    with fleet.producing():
        leaves = fleet.join("leaves")
        stays = fleet.join("stays")
        fleet.until(lambda: fleet.shared(leaves, stays), "both share the partition")
        held = fleet.held(leaves)
        code, out, err = run(
            "drain", fleet.group, "--redis", fleet.redis_url, "--member", leaves.member, "--json", "--execute"
        )
        assert (code, err) == (0, "")
        assert json.loads(out)["seconds"] < SESSION_S
        assert fleet.delivered(held) < SESSION_S, "a second application reads its keys"
        leaves.running.terminate()
        leaves.running.wait(60)
        assert not {"lost", "expire"} & {event.kind for event in fleet.events_of(leaves)}
        leaves.start()
        fleet.until(lambda: fleet.shared(leaves, stays), "its next life works again")
    fleet.until(lambda: fleet.everything_arrived, "every record is in a sink")
    require(fleet.outcome().good, fleet.outcome())
