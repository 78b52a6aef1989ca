"""What more than one kind, or whoever asks them, needs: values, names, bodies of writes, what is read of pods. Pure.

Owns the values in which kinds answer (`values`, `review`), Kueue's identifiers (`markers`), the marks of ours on
objects, the rules that the webhook holds all kinds to (`rules`, `fixed`), and the tables of what is not served. Imports
no kind. Called by the folders of the kinds, by both cores, by the webhooks and the command line.
"""
