"""Raise once, or always, in each function that is about one object: `make simulate`, or `python -m support.sweep.many`.

In each scenario all functions of the manager, the agent and the kinds are taken that were called about the one object,
and each raises in its first call, its second, one in the middle, and its last: once, or always until it is mended. What
is promised (IS-4): no process ends, everybody else's work does, the books are right at each moment (the outside check),
and the object comes to its own end once nothing raises any more. Prints each that breaks it; ends with 1 then.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import random
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from gatelift_kube.deciding.contained import PAUSE_SECONDS_MAX, Contained
from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from support.on_purpose import OnPurposeError
from support.sim.attribution import GROUPED
from support.sim.history import History
from support.sim.objects import holds
from support.sweep.raising import SIDES, About, Place, Raising, begin_anew, census
from support.sweep.scenarios import BAD, LIFE_SECONDS, SCENARIOS, Play, is_bad

GOOD_SECONDS = 60.0
"""Within this another user's pod of five seconds is finished, whatever raises about `bad`."""
REST_SECONDS = PAUSE_SECONDS_MAX + 200.0
"""Within this everything is looked at again."""
TOLD_EVERY_SECONDS = 30.0
ENGINE = "gatelift_admission"


@dataclass(frozen=True)
class Case:
    """One raise: where, and in which life."""

    scenario: str
    side: str
    place: Place
    nth: int
    always: bool

    def __str__(self) -> str:
        how = "always" if self.always else "once"
        return f"{self.scenario} {self.side} {self.place} {self.nth} {how}"


@cache
def counted(scenario: str, side: str) -> tuple[tuple[Place, int], ...]:
    """Return the functions of a side that are called about `bad` in a scenario, and how often."""
    begin_anew()
    about = About(BAD)
    with contained(), census(side, about) as found:
        SCENARIOS[scenario](Play(History(shown=False), about))
    return tuple(sorted(found.items()))


def cases(scenario: str, side: str) -> list[Case]:
    """Return all raises of a scenario."""
    return [
        Case(scenario, side, place, nth, always)
        for place, calls in counted(scenario, side)
        for nth in sorted({1, 2, max(1, calls // 2), calls})
        if nth <= calls
        for always in (False, True)
    ]


@contextmanager
def contained() -> Iterator[None]:
    """Contain exceptions as a daemon does, while this lasts."""
    before, Contained.surfaces = Contained.surfaces, False
    try:
        yield
    finally:
        Contained.surfaces = before


def lived(case: Case) -> list[str]:
    """Live through one raise; return what was promised and did not come."""
    begin_anew()
    about = About(BAD)
    raising = Raising(case.place, about, case.nth, always=case.always)
    try:
        with contained():
            history = History(shown=False)
            with raising.armed(case.side):
                return list(_lived(case, history, about, raising))
    except OnPurposeError as error:
        return [f"a process ends: {_way(error)}"]
    except Exception as error:  # noqa: BLE001 - whatever it was, this case is told, and the others go on
        return [f"{type(error).__name__}: {error}"[:1000]]


def _lived(case: Case, history: History, about: About, raising: Raising) -> Iterator[str]:
    play = Play(history, about)
    wants = SCENARIOS[case.scenario](play)
    history.pod("good", seconds=5.0)
    history.passes(GOOD_SECONDS)
    if not history.shows("good", "Finished"):
        yield f"another user's pod is not finished after {GOOD_SECONDS:g} s"
    raising.mended = True
    history.passes(REST_SECONDS)
    if play.owed is not None:
        play.owed()
        history.passes(LIFE_SECONDS)
    if not history.shows("good", "Finished"):
        yield "another user's pod is never finished"
    yield from _end(history, wants)


def _end(history: History, wants: str) -> Iterator[str]:
    """Say what is left of `bad` that should not be."""
    running = sum(history.containers(BAD, kind) for kind in ("Pod", "Job", GROUPED))
    if running:
        yield f"{running} containers run on"
    found = history.workload(BAD) or history.workload(BAD, "Job") or history.home.look(WORKLOAD, BAD)
    if wants == "gone" and found is not None:
        yield "its Workload is there"
    if wants == "finished" and not (found is not None and holds(found, "Finished")):
        yield "its Workload is not finished"
    for queue in ("travels", "stays"):
        if history.leader.charges(queue):
            yield f"{history.leader.charges(queue)}m are charged in {queue}"
    clusters = {**history.workers, **({"home": history.home} if wants == "gone" else {})}
    for name, cluster in clusters.items():
        left = [each for kind in (POD, JOB) for each in cluster.all(kind) if is_bad(each["metadata"]["name"])]
        if left:
            yield f"{len(left)} objects are left in {name}"
    core = history.leader.machine.core
    if core.caution.set_aside or core.untaken:
        yield f"it is still set aside: {core.caution.set_aside} {core.untaken.refs()}"


def _way(error: Exception) -> str:
    steps = traceback.extract_tb(error.__traceback__)
    names = [step.name for step in steps]
    return " < ".join(names[names.index("handle") :] if "handle" in names else names[-6:])


def drawn(scenario: str, side: str, seed: int) -> Case:
    """Return one case of a scenario, the same one for the same seed, whatever else there is to be drawn.

    The engine has no share in it: where it runs compiled there is nothing in it that could be raised in.
    """
    there = (case for case in cases(scenario, side) if not case.place.module.startswith(ENGINE))
    return min(there, key=lambda case: hashlib.sha256(f"{seed} {case}".encode()).digest())


def named(text: str) -> Case:
    """Return the case that is told by a text. ValueError: there is none of such a form."""
    scenario, side, place, nth, how = text.split()
    module, name = place.split(":")
    return Case(scenario, side, Place(module, name), int(nth), always={"once": False, "always": True}[how])


def _one(case: Case) -> tuple[Case, list[str]]:
    return case, lived(case)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _asked_for(told: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases that the command line asks for."""
    for scenario in told.scenario:
        for side in told.side:
            for case in cases(scenario, side):
                if any(each in str(case.place) for each in told.only):
                    yield case


def main() -> int:
    """Live through all cases, or so many of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=0, help="how many, drawn; 0: all")
    parser.add_argument("--seed", type=int, default=0, help="which are drawn")
    parser.add_argument("--scenario", nargs="*", default=[*SCENARIOS], choices=sorted(SCENARIOS), help="only these")
    parser.add_argument("--side", nargs="*", default=[*SIDES], choices=sorted(SIDES), help="only these")
    parser.add_argument("--only", nargs="*", default=[""], help="only functions whose name has one of these in it")
    parser.add_argument("--case", help="just this one, as it was told")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many at once")
    told = parser.parse_args()
    began = said_at = time.monotonic()
    jobs = [named(told.case)] if told.case else list(_asked_for(told))
    if told.cases:
        random.Random(told.seed).shuffle(jobs)  # noqa: S311 - the same for the same seed is what is wanted
        jobs = jobs[: told.cases]
    failed = 0
    with multiprocessing.Pool(told.processes) as pool:
        for done, (case, problems) in enumerate(pool.imap_unordered(_one, jobs, chunksize=4), 1):
            failed += bool(problems)
            if problems:
                say(f"{case}: {'; '.join(problems)}")
            if time.monotonic() - said_at > TOLD_EVERY_SECONDS:
                said_at = time.monotonic()
                say(f"{done} of {len(jobs)} cases, {failed} failed")
    say(f"{len(jobs)} cases in {time.monotonic() - began:.0f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
