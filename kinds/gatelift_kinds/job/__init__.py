"""batch/v1 Job, not elastic. Pure.

Owns what is done with a Job from its Workload to its end: `kind` answers, with what it is charged for (`charged`), what
of it may not change (`fixed`), partial admission (`partial`), its pods against what was counted (`pods`), what the
webhook sets and refuses (`rules`), what its user does to one that runs (`running`), the labels of its pods
(`selector`), what its status shows and the handshake of stopping (`status`), and its pod template: what is added
(`template`) and taken back at home (`template_before`). Called through `registry`.
"""
