"""What pods ask for and what they were granted: from a pod template, or from `status.admission`, to amounts.

Pure functions of objects; owns nothing.
"""
