"""Numbers, texts, times and names of the Kubernetes API as plain values. Pure; nothing below it."""
