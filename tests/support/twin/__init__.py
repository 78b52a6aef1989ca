"""A second admission engine, deliberately slow and literal: the judge of the fast one.

Written from the published behaviour of Kueue's scheduler (the section numbers in the docstrings are those of the
project's notes on it: 2.1 amounts, 2.2 quota tree, 2.3 queues, 2.4 cycle, 2.5 flavors, 2.6 targets and partial
admission, 2.7 entries, 2.8 classical preemption, 2.9 fair sharing, 2.10 way back, 3 texts). Each cycle works on a
fresh copy of everything; nothing is cached, indexed or undone cleverly; every question is answered by walking all
there is. It shares with the fast engine only the objects it is fed and what a pod template requests.

    arithmetic  saturating sums          quota      the tree of one snapshot
    records     workloads as kept here   matching   taints and affinity
    flavors     which flavor, how well   partial    fewer pods than asked for
    targets     classical preemption     sharing    fair sharing: shares, tournament, targets
    queues      heap, inadmissible set   entries    one entry after the other
    texts       what people read         engine     objects in, cycles out: start there
"""
