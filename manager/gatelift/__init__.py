"""The management daemon and the command line.

Six nouns: a *workload* asks for quota; a *work* joins it with users' objects; an *attempt* (epoch 1, 2, 3, ...) is one
admission of it; a *placement* is an attempt on one worker cluster; the *ledger* says what is charged; the *mirror*
writes back what the worker reports.
`core` decides (values in, values out), `adapters` touch the world, `app` joins them and loops, `cli` talks to people,
`webhooks` is a daemon of its own.
"""
