"""What each of the nine rules of sizes is for: the shortest history without it, as the model finds it (SL-40 to SL-48).

`tests/model/test_sizes.py` searches for them; `support.agent.size_traces` plays them to the agent's own core.
"""

from __future__ import annotations

from dataclasses import dataclass

from support.sizes_model.state import Budget, SizeRule

NOTHING = Budget(wishes=0, evictions=0, cuts=0, crashes=0, takeovers=0, slow_home=0, slow_worker=0)


@dataclass(frozen=True)
class Needed:
    """A rule, or half of one, and the shortest history without it."""

    rule: SizeRule
    budget: Budget
    transcript: str

    def lines(self) -> tuple[str, ...]:
        return tuple(line.strip() for line in self.transcript.strip().splitlines())


NEEDED = {
    "SL-40": Needed(
        SizeRule.ONE_RECORD,
        NOTHING._replace(wishes=2, takeovers=1, slow_home=1),
        """
        user asks for 2+1
        manager has target ask for 2+1
        user asks for 1+0
        manager makes target the record: size 2, 2+1 charged (slow)
        another manager leads
        manager lowers the record: size 2, 1+0 wanted, 1+1 charged
        the late write at home lands
        !! two records of size 2
        """,
    ),
    "SL-40 eviction": Needed(
        SizeRule.ONE_RECORD,
        NOTHING._replace(wishes=1, evictions=1, takeovers=1, slow_home=1),
        """
        user asks for 2+1
        manager has target ask for 2+1
        manager makes target the record: size 2, 2+1 charged (slow)
        another manager leads
        a person sees no pod and says fenced
        manager releases all and raises the epoch
        the late write at home lands
        !! a record of epoch 1, which has ended
        """,
    ),
    "SL-40 winner": Needed(
        SizeRule.RECORD_HAS_WINNER,
        NOTHING._replace(wishes=1, asked=1),
        """
        user asks for 2+1
        manager has target ask for 2+1
        manager reserves 2+1 for target
        manager finishes the slice of size 1
        agent lifts a pod of set 0
        !! 1+0 may run, 0+0 charged
        """,
    ),
    "SL-41": Needed(
        SizeRule.CHARGE_FOLLOWS_ANSWER,
        NOTHING._replace(wishes=1),
        """
        user asks for 1+0
        manager lowers the record: size 2, 1+0 wanted, 1+0 charged
        agent lifts a pod of set 1
        !! 0+1 may run, 1+0 charged
        """,
    ),
    "SL-42": Needed(
        SizeRule.NO_DEADLINE,
        NOTHING._replace(wishes=1),
        """
        user asks for 2+1
        manager has target ask for 2+1
        manager makes target the record: size 2, 2+1 charged
        a deadline takes back the slice of size 2
        agent takes size 2
        agent sets the Job to size 2, 2+1
        agent lifts a pod of set 0
        agent lifts a pod of set 0
        !! 2+0 may run, 1+1 charged
        """,
    ),
    "SL-43": Needed(
        SizeRule.SIZES_GO_UP,
        NOTHING._replace(wishes=1),
        """
        user asks for 1+0
        manager lowers the record: size 2, 1+0 wanted, 1+1 charged
        agent takes size 2
        agent sets the Job to size 2, 1+0
        agent answers size 2
        manager takes the answer of size 2: 1+0 charged
        agent takes size 1
        agent sets the Job to size 1, 1+1
        agent lifts a pod of set 1
        !! 0+1 may run, 1+0 charged
        """,
    ),
    "SL-44": Needed(
        SizeRule.ANSWER_NAMES_SIZE,
        NOTHING._replace(wishes=1),
        """
        user asks for 1+0
        manager lowers the record: size 2, 1+0 wanted, 1+1 charged
        agent answers size 1
        manager takes the answer of size 1: 1+0 charged
        agent lifts a pod of set 1
        !! 0+1 may run, 1+0 charged
        """,
    ),
    "SL-45 pods": Needed(
        SizeRule.ANSWER_WAITS_FOR_PODS,
        NOTHING._replace(wishes=1),
        """
        user asks for 1+0
        manager lowers the record: size 2, 1+0 wanted, 1+1 charged
        agent lifts a pod of set 1
        agent takes size 2
        agent sets the Job to size 2, 1+0
        agent answers size 2
        manager takes the answer of size 2: 1+0 charged
        !! 0+1 may run, 1+0 charged
        """,
    ),
    "SL-45 writes": Needed(
        SizeRule.ANSWER_WAITS_FOR_WRITES,
        NOTHING._replace(wishes=1, crashes=1),
        """
        user asks for 1+0
        manager lowers the record: size 2, 1+0 wanted, 1+1 charged
        agent lifts a pod of set 1
        agent takes size 2
        a pod of set 1 fails
        agent answers size 2
        manager takes the answer of size 2: 1+0 charged
        the agent dies
        another replica begins
        agent lifts a pod of set 1
        !! 0+1 may run, 1+0 charged
        """,
    ),
    "SL-46 in flight": Needed(
        SizeRule.LIFTS_IN_FLIGHT_COUNT,
        NOTHING._replace(wishes=2, slow_worker=1),
        """
        user asks for 2+1
        manager has target ask for 2+1
        user asks for 1+0
        manager makes target the record: size 2, 2+1 charged
        manager finishes the slice of size 1
        manager lowers the record: size 3, 1+0 wanted, 2+1 charged
        agent takes size 2
        agent sets the Job to size 2, 2+1
        agent takes size 3
        agent sets the Job to size 3, 1+0
        agent answers size 3
        manager takes the answer of size 3: 1+0 charged
        agent lifts a pod of set 0 (slow)
        agent lifts a pod of set 0
        !! 2+0 may run, 1+0 charged
        """,
    ),
    "SL-46 terminating": Needed(
        SizeRule.TERMINATING_COUNTS,
        NOTHING._replace(wishes=2),
        """
        user asks for 1+0
        manager lowers the record: size 2, 1+0 wanted, 1+1 charged
        user asks for 2+1
        manager has target ask for 2+1
        manager makes target the record: size 3, 2+1 charged
        agent lifts a pod of set 1
        agent takes size 2
        agent sets the Job to size 2, 1+0
        agent takes size 3
        a running pod of set 1 is deleted
        agent sets the Job to size 3, 2+1
        agent lifts a pod of set 1
        !! 0+2 may run, 2+1 charged
        """,
    ),
    "SL-47": Needed(
        SizeRule.REPLICA_WAITS,
        NOTHING._replace(wishes=2, crashes=1, slow_worker=1),
        """
        user asks for 2+1
        manager has target ask for 2+1
        user asks for 1+0
        manager makes target the record: size 2, 2+1 charged
        manager finishes the slice of size 1
        manager lowers the record: size 3, 1+0 wanted, 2+1 charged
        agent takes size 2
        agent sets the Job to size 2, 2+1
        agent takes size 3
        agent sets the Job to size 3, 1+0
        agent answers size 3
        manager takes the answer of size 3: 1+0 charged
        agent lifts a pod of set 0 (slow)
        the agent dies
        another replica begins
        the agent connects
        agent takes size 3
        agent lifts a pod of set 0
        !! 2+0 may run, 1+0 charged
        """,
    ),
    "SL-48": Needed(
        SizeRule.OPENING_IS_CONFIRMED,
        NOTHING._replace(cuts=1),
        """
        cut
        a person sees no pod and says fenced
        manager releases all and raises the epoch
        agent lifts a pod of set 0
        !! 1+0 may run, 0+0 charged
        """,
    ),
}
