"""The command `reset-offsets`: its arguments, its errors, and the file of Kafka's client properties."""

from pathlib import Path

import pytest

from command_runs import Run
from coordinator.values.subscription import TopicPartition
from group_services import Group, subscribed
from group_services import run as run_query
from resets import reset
from secure_listener import SecureListener

# -- the command -----------------------------------------------------------------------------------


USAGE: dict[str, tuple[list[str], str]] = {
    "no target": (["--all-topics"], "exactly one of"),
    "two targets": (["--all-topics", "--to-latest", "--shift-by", "1"], "exactly one of"),
    "no topic": (["--to-latest"], "--all-topics"),
    "a topic and all": (["--to-latest", "--topic", "t", "--all-topics"], "--all-topics"),
    "no time": (["--all-topics", "--to-datetime", "yesterday"], "yesterday"),
    "an offset below zero": (["--all-topics", "--to-offset", "-3"], "--to-offset"),
}


@pytest.mark.parametrize(("arguments", "printed"), USAGE.values(), ids=USAGE)
def test_wrong_usage_ends_with_2(run: Run, members: Group, arguments: list[str], printed: str) -> None:
    code, out, err = reset(run, members, *arguments)
    assert (code, out) == (2, "")
    assert printed in err


def test_a_topic_that_the_group_does_not_read_is_named(run: Run, members: Group, tp: TopicPartition) -> None:
    assert reset(run, members, "--all-topics", "--to-latest")[2].startswith("UNKNOWN_GROUP")
    run_query(members, subscribed(tp))
    for topic, named, expected in (("other", "other", 1), (f"{tp.topic}:0,7", f"{tp.topic}-7", 1), ("a b", "a b", 2)):
        code, out, err = reset(run, members, "--topic", topic, "--to-latest")
        assert (code, out) == (expected, "")
        assert named in err


def test_a_login_before_a_broker_and_an_escape_in_a_property_are_not_printed(
    run: Run, members: Group, tmp_path: Path
) -> None:
    config = tmp_path / "client.properties"
    config.write_text("re\\u001b[31mtrys=1\nsasl.oauthbearer.x=1\n")
    place = ("reset-offsets", members.name, "--all-topics", "--to-earliest", "--redis", members.redis_url)
    code, _, err = run(*place, "--bootstrap-server", "u:hunter2@host:9092")
    assert (code, "hunter2" in err, "Remedy: set --bootstrap-server to host:port" in err) == (2, False, True)
    code, _, err = run(*place, "--bootstrap-server", "host:9092", "--command-config", str(config))
    assert code == 2
    assert err.startswith("warning: there is no Kafka property 're\\x1b[31mtrys': ignored\nINVALID_OPTION: ")
    assert "option kafka.sasl.oauthbearer.x is not supported" in err


def test_the_command_config_is_read_as_kafkas_own_tools_read_it(
    run: Run, members: Group, tp: TopicPartition, secure_listener: SecureListener, tmp_path: Path
) -> None:
    run_query(members, subscribed(tp))
    config = tmp_path / "client.properties"
    config.write_text(
        f"""# as kafka-consumer-groups --command-config takes it
        security.protocol = SASL_SSL
        sasl.mechanism: SCRAM-SHA-512
        sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required \\
            username="{secure_listener.user}" password="{secure_listener.password}";
        ssl.truststore.type=PEM
        ssl.truststore.location={secure_listener.authority}
        retrys=3
        """
    )
    arguments = ["--redis", members.redis_url, "--bootstrap-server", secure_listener.bootstrap, "--all-topics"]
    code, out, err = run(
        "reset-offsets", members.name, *arguments, "--to-earliest", "--command-config", str(config), "--execute"
    )
    assert (code, members.state.stable) == (0, {tp: 0}), err
    assert err == "warning: there is no Kafka property retrys: ignored\n"
    assert out.splitlines()[1].split() == [tp.topic, "0", "5", "0", "-5"]
