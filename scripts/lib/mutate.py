"""The command `scripts/mutants`: runs seeded faults one by one, and prints the catcher of each."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import processes
import servers
from broker_jars import ROOT
from mutants.catalogue import FAULTS
from mutants.fault import Fault, Find
from mutants.hunt import Hunt, UnsoundError
from mutants.places import OutOfDateError
from mutants.tree import copied


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/mutants",
        description="Breaks a copy of the code in one seeded way after the other. A test must catch each fault,"
        " or a schedule of the simulation.",
    )
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="only faults whose rule or text has one of these words"
    )
    parser.add_argument("--part", type=_part, default=(1, 1), metavar="K/N", help="each N-th fault, from the K-th on")
    parser.add_argument("--list", action="store_true", help="only print the names of the faults")
    return parser.parse_args()


def _part(text: str) -> tuple[int, int]:
    first, of = map(int, text.split("/"))
    if not 1 <= first <= of:
        raise argparse.ArgumentTypeError(f"{text} is no part: 1/2 and 2/2 are the parts of two")
    return first, of


def main() -> int:
    """Hunt the faults; 0 if all are caught, 1 if one is not, 2 if the faults do not fit the code any more."""
    wanted = arguments()
    first, of = wanted.part
    faults = [f for f in FAULTS if not wanted.words or any(word in f.name for word in wanted.words)][first - 1 :: of]
    if not faults:
        print(f"no fault has {' or '.join(wanted.words)} in its rule or text: see --list", file=sys.stderr)
        return 2
    if wanted.list:
        print("\n".join(f.name for f in faults))
        return 0
    try:
        with processes.ending_politely(), ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coop-kafka-mutants-")))
            return _hunt(Hunt(copied(ROOT, folder / "tree"), _servers(folder, stack)), faults)
    except (UnsoundError, OutOfDateError) as error:
        print(error, file=sys.stderr)
        return 2


def _servers(folder: Path, stack: ExitStack) -> dict[str, str]:
    kafka, redis = stack.enter_context(servers.kafka_and_valkey(folder))
    return {"COOP_KAFKA": kafka.address, "COOP_REDIS": redis.address}


def _hunt(hunt: Hunt, faults: Sequence[Fault]) -> int:
    print("| fault | caught by | seconds |\n|---|---|---|")
    sound, finds = hunt.sound(faults), []
    print(f"| {sound.fault} | nothing, as it must be | {sound.seconds:.0f} |", flush=True)
    for fault in faults:
        finds.append(hunt.find(fault))
        _row(finds[-1])
    missed = sum(not find.caught_by for find in finds)
    print(f"{len(finds) - missed} of {len(finds)} caught, in {sum(f.seconds for f in (sound, *finds)):.0f} s")
    hunt.sound(faults)  # if it raises, the rows prove nothing: a server that died may have caught all faults since
    return 1 if missed else 0


def _row(find: Find) -> None:
    print(f"| {find.fault} | {find.caught_by or '**nothing**'} | {find.seconds:.0f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
