"""batch/v1 Job; elastic (KEP-77) only where a registry asks for that kind. Pure.

Owns what is done with a Job from its Workload to its end: `kind` answers, with what it is charged for (`charged`), what
of it may not change (`fixed`), partial admission (`partial`), its pods against what was counted (`pods`), what the
webhook sets and refuses (`rules`), what its user does to one that runs (`running`), the labels of its pods
(`selector`), what its status shows and the handshake of stopping (`status`), and its pod template: what is added
(`template`) and taken back at home (`template_before`). What is otherwise of elastic Jobs: `elastic_kind` answers, with
what they are set to and whose turn is next (`elastic`), and their part of the webhook (`elastic_rules`). Called through
`registry`.
"""
