"""The sessions with the clusters: who greets, who is served, what is granted, what WorkerCluster's status says.

Owns one link for each cluster. What follows from a report for a Workload is concluded elsewhere (`conclusions`).
"""
