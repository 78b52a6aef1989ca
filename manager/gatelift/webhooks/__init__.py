"""Admission webhooks: a stateless daemon of its own, two replicas, TLS with its own certificates.

`app` joins the parts: `server` takes reviews, `review` reads and answers them, `surroundings` knows namespaces and
queues from watches, `owners` looks up what owns a pod; `certificates` makes and renews, `secret` keeps the material,
`configuration` says what the API server is to ask, `injection` keeps that in place. The rules themselves are in
`gatelift_kinds`.
"""
