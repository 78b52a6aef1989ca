"""A stand-in kubelet: nodes that look alive and pods that run as their annotations say, without any container.

`machine` decides (pure, one door) with `pods` and `nodes`, whose JSON is in `documents`; `loop` watches, writes and
keeps the record; `python -m gatelift_sandbox.kubelet` is the process. It serves any API server.
"""
