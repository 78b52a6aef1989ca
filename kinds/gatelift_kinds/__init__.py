"""What is known of each kind, pure, used by both ends. One folder is one kind.

- `kind`: what is asked of a kind, in four protocols. What a kind does not say is nothing.
- `registry`: the kinds, in the order in which an object is offered to them. Both ends and the webhooks ask it, and no
  folder of a kind.
- `pod`, `pod_group`, `job`, `bare`: a kind each; none imports another one. `any_pod`: what is done
  with any pod.
- `shared`: what more than one of them needs, and the values in which they answer.

Data go down: the registry calls a kind, a kind calls `shared`; nothing here calls a core.
"""
