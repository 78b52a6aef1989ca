"""What is done with a pod of a user, whether it is alone or in a group. Pure; no kind by itself.

`kind` answers what is asked of any such pod, with what it is charged for (`charged`), what its containers show
(`status`), and what an API server is to show the webhook of pods (`hook`). The kinds of pods stand on it.
"""
