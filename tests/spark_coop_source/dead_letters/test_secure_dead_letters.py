"""Dead letters over TLS and a login, with and without the right to write; no error shows a secret."""

import gc
import traceback

import pytest
from kafka.admin import ACLOperation, ResourceType

from coordinator.errors import KafkaAccessError
from coordinator.kafka.client import Secret
from failed_rows import row, send
from guarded_broker import GuardedBroker
from written_records import consumed

pytestmark = pytest.mark.usefixtures("closed_clients")


def test_over_tls_and_a_login_with_the_right_to_write(guarded: GuardedBroker) -> None:
    topic = guarded.kafka.create_topic("orders-dead")
    guarded.grant(ResourceType.TOPIC, topic, ACLOperation.WRITE)
    send(topic, guarded.settings, row())
    assert len(consumed(guarded.kafka.bootstrap, topic)) == 1


def test_without_the_right_to_write_the_error_names_it_and_no_secret(guarded: GuardedBroker) -> None:
    topic = guarded.kafka.create_topic("orders-dead")
    secret = guarded.settings | {"sasl_plain_password": Secret(str(guarded.settings["sasl_plain_password"]))}
    with pytest.raises(KafkaAccessError, match=f"write to topic '{topic}'") as error:
        send(topic, secret, row())
    assert "WRITE" in error.value.remedy
    assert "wonder-land" not in "".join(traceback.format_exception(error.value))


@pytest.mark.filterwarnings("ignore:unclosed <(socket|ssl):ResourceWarning")
def test_a_wrong_password_is_named_and_never_shown(guarded: GuardedBroker) -> None:
    wrong = guarded.settings | {"sasl_plain_password": Secret("pa55word")}
    with pytest.raises(KafkaAccessError, match="refused the credentials") as error:
        send("orders-dead", wrong, row())
    assert "pa55word" not in "".join(traceback.format_exception(error.value))
    del error
    gc.collect()
