"""A neighbour: keeps one core busy in bursts, so that a measurement beside it is a disturbed one.

    python3 benches/disturb.py [--share 0.25] [--busy 0.5] [--seconds N] [--seed 42] [--processor K]

Lengths of busy and idle times are exponential, from a seeded generator: the same seed, the same sequence. It ends after
--seconds, or with the process that started it. On the way out it prints what it did.
"""

import argparse
import os
import random
import signal
import time

# How often it looks whether its parent is still there.
LOOK = 0.05


class Ended(Exception):
    """Time is up, or the parent is gone."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=0.25, help="share of the time that it is busy (default: 0.25)")
    parser.add_argument("--busy", type=float, default=0.5, help="mean length of a burst in seconds (default: 0.5)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="ends after so long (default: with its parent)")
    parser.add_argument("--seed", type=int, default=42, help="of the lengths (default: 42)")
    parser.add_argument("--processor", type=int, help="stay on this processor (default: any)")
    given = parser.parse_args()
    if not 0 < given.share < 1 or given.busy <= 0:
        parser.error("--share lies between 0 and 1, --busy above 0")
    return given


def main() -> None:
    given = arguments()
    if given.processor is not None:
        os.sched_setaffinity(0, {given.processor})
    parent, started = os.getppid(), time.monotonic()
    end = started + given.seconds
    chance = random.Random(given.seed)
    mean_idle = given.busy * (1 - given.share) / given.share

    def until(moment: float, work) -> None:
        while (now := time.monotonic()) < moment:
            if now >= end or os.getppid() != parent:
                raise Ended
            work(min(moment, end, now + LOOK))

    def burn(moment: float) -> None:
        while time.monotonic() < moment:
            sum(range(1000))

    def rest(moment: float) -> None:
        time.sleep(max(0.0, moment - time.monotonic()))

    def stop(*_) -> None:
        raise Ended

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    bursts = 0
    try:
        while True:
            until(time.monotonic() + chance.expovariate(1 / mean_idle), rest)
            bursts += 1
            until(time.monotonic() + chance.expovariate(1 / given.busy), burn)
    except Ended:
        pass
    print(f"{bursts} bursts, {time.process_time():.1f} s busy of {time.monotonic() - started:.1f} s", flush=True)


if __name__ == "__main__":
    main()
