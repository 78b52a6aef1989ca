"""What a write or a read of the management API is for. Pure.

One table, since three things hang on it: how long what a write takes is given to nobody else (`charges`), whose refusal
is an end that cannot be written (`ends`), and which writes keep nothing else of their object waiting (`informs`).
"""

from __future__ import annotations

import enum


class Purpose(enum.Enum):
    """The value is what the log says."""

    WINNER = "winner"
    RESERVE = "reserve"
    ADMIT = "admit"
    GROW = "grow"
    STRIKE_GROWTH = "give back what was to grow"

    EVICT = "evict"
    FINISH = "finish"
    FINISH_SLICE = "finish a slice"
    SHRINK = "give back what a smaller size needs no more"
    RELEASE = "release"
    EVICT_AND_RELEASE = "evict and release"

    RECLAIM = "reclaim"
    DRAIN = "say that it drains"
    PODS_READY = "pods ready"
    REPLACEMENTS = "what is to be made again"
    WHY_WAITING = "why waiting"
    WHY_HELD = "why held"
    POD_TROUBLE = "pod trouble"
    MADE_THERE = "made there"
    KEEP_ENDS = "keep ends"
    MIRROR = "mirror"
    MIRROR_END = "mirror the end"
    SHOW_END = "show the end"
    SHOW_PLACED = "placed owner"
    PUT_MARK_BACK = "put the mark back"
    PUT_OWNER_BACK = "put the owner back"
    PUT_RECORD_BACK = "put the record back"
    HOLD = "hold what is in use"
    LET_GO = "let go what is in use no more"

    ADOPT = "adopt"
    PUT_TERM_BACK = "put the term back"
    RAISE_EPOCH = "raise epoch"
    RAISE_AFTER_RESTORE = "raise epoch after a restore"
    RECOVERY = "recovery"
    CHECKS = "checks"
    REQUEUE = "requeue"
    PRIORITY = "priority"
    ANNOUNCE_DEACTIVATION = "announce deactivation"
    DEACTIVATE = "deactivate"
    CREATE_WORKLOAD = "create workload"
    UPDATE_WORKLOAD = "update workload"
    RESIZE = "resize"
    RENUMBER = "raise the number of a size"
    ADD_OWNERS = "add owners"
    HOLD_WORKLOAD = "hold the workload"
    RELEASE_WORKLOAD = "release workload"
    DELETE_WORKLOAD = "delete workload"
    DELETE_FINISHED = "delete finished"
    DELETE_PAST_SLICE = "delete a slice beyond those that are kept"
    DELETE_DEACTIVATED = "delete deactivated"
    DELETE_SURPLUS = "delete what is too many"
    DELETE_WITH_WORKLOAD = "delete with its Workload"
    SAY_END = "say why it ends"
    SUSPEND = "suspend"
    UNPLACE_OWNER = "unplace owner"
    RELEASE_OWNER = "release owner"
    STATUS = "status"

    READ_BEFORE_END = "read before its Workload ends"
    READ_AFTER_DOUBT = "read after doubt"
    READ_AS_IT_LEFT = "read as it left its queue"

    @property
    def charges(self) -> bool:
        """Say whether it charges quota: while it may still land, what it takes is not given to somebody else."""
        return self in _CHARGE

    @property
    def ends(self) -> bool:
        """Say whether it says that a placement is over."""
        return self in _END

    @property
    def informs(self) -> bool:
        """Say whether everything else about its object goes on after its failure."""
        return self in _INFORM


_CHARGE = frozenset({Purpose.WINNER, Purpose.RESERVE, Purpose.ADMIT, Purpose.GROW})
_END = frozenset({Purpose.FINISH, Purpose.RELEASE, Purpose.EVICT_AND_RELEASE})
_INFORM = frozenset(
    {
        Purpose.RECLAIM,
        Purpose.DRAIN,
        Purpose.PODS_READY,
        Purpose.REPLACEMENTS,
        Purpose.WHY_WAITING,
        Purpose.WHY_HELD,
        Purpose.POD_TROUBLE,
        Purpose.MADE_THERE,
        Purpose.MIRROR,
        Purpose.MIRROR_END,
        Purpose.SHOW_END,
        Purpose.SHOW_PLACED,
        Purpose.PUT_MARK_BACK,
        Purpose.SAY_END,
        Purpose.PUT_OWNER_BACK,
        Purpose.ADD_OWNERS,
        Purpose.PUT_RECORD_BACK,
        Purpose.HOLD,
        Purpose.LET_GO,
    }
)
