"""The embedded API server: a Kubernetes API inside one process, for tests, the simulation and trying out.

`store` is the heart and pure: objects, versions, watches, no HTTP and no clock. `kinds` and `rules/` say what is served
and what the API server does to each kind; `crds` and `schema` add kinds at run time; `admission` holds the built-in
admission plugins. `server` puts HTTP around it, with `requests`, `identity`, `rbac`, `webhooks`, `discovery`,
`openapi` and `tables`. `provider` runs servers as processes behind the interface of all providers.

Not there: server-side apply, ResourceQuota, eviction, CEL rules (of CRDs and ValidatingAdmissionPolicies), protobuf but
for what kubectl makes of its arguments (`protobuf`).
"""
