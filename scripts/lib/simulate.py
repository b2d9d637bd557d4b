"""The command `scripts/simulate`: the real coordinator under faults, on a real Valkey and a virtual clock."""

import argparse

import schedule_valkey
from simulation import schedules
from simulation.schedules import Outcome


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="scripts/simulate", description=__doc__)
    parser.add_argument("--schedules", type=int, default=500, metavar="N", help="number of schedules (default 500)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the first seed (default 0)")
    parser.add_argument("--seconds", type=float, metavar="T", help="start no schedule after T seconds")
    parser.add_argument("--violations", type=int, metavar="N", help="stop after N violations")
    parser.add_argument("--trace", action="store_true", help="print the whole story of the first schedule")
    return parser.parse_args()


def main() -> int:
    """Run the schedules; 0 if every promise was kept and every wanted event happened, else 1."""
    wanted = arguments()
    with schedule_valkey.of_command() as valkey:
        if wanted.trace:
            print("\n".join(schedules.story(valkey, wanted.seed)))
        seeds = range(wanted.seed, wanted.seed + wanted.schedules)
        outcome = schedules.run(valkey, seeds, seconds=wanted.seconds, violations=wanted.violations)
    _report(outcome)
    return 1 if outcome.failures or outcome.never else 0


def _report(outcome: Outcome) -> None:
    for failure in outcome.failures:
        print(f"seed {failure.seed}: {failure.what[:400]}\n  replay: {failure.command}")
    print(outcome)
    if outcome.never:
        print(f"never reached: {', '.join(outcome.never)}")


if __name__ == "__main__":
    raise SystemExit(main())
