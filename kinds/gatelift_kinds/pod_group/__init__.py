"""Pods of a group, admitted and placed as one (KEP-976). Pure. In a registry that tests alone use yet.

- `marks`: what a member says by labels and annotations; `declaration`: the sets that a driver declares of pods that
  come later (story 3), read by way of `yaml_text`.
- `roles`: which role a pod has, and why it has none; `shapes`: its template without what an API server put in, and how
  two shapes differ.
- `declaring`: which pod declares the sets of all, and who is read anew when that changes.
- `member`: where one pod stands, what it counts as, and when its finalizer may go: one table.
- `reading`: from a pod as served to what is counted of it; `members`: all pods of a group, in `ordered` lists and
  `tally` counts that each change of one pod keeps up.
- `slots`: who is let go, who waits for whose place, who is too many, who was replaced.
- `composition`: when its Workload is made, of what, and what is told until then; `document` is that Workload.
- `ends`: when a group is over and with which result; what is told while replacements are waited for.
- `kind` answers as a kind does, `gathering` for all pods of a group together.
- `rules`: what the webhook sets and refuses of a member; `reviewed` answers with it, as a kind does.

Nothing here goes through all members, but what writes them all into one object.
"""
