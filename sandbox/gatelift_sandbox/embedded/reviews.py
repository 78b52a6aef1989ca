"""Kinds that are answered and not kept: token reviews, access reviews. Pure but for the tokens' clock argument."""

from __future__ import annotations

from gatelift_kube.values.resources import Resource

_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
TOKEN_REVIEW = Resource(_AUTHENTICATION, "v1", "TokenReview", "tokenreviews", namespaced=False)
SELF_SUBJECT_REVIEW = Resource(_AUTHENTICATION, "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
ACCESS_REVIEW = Resource(_AUTHORIZATION, "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
LOCAL_ACCESS_REVIEW = Resource(_AUTHORIZATION, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews")
SELF_ACCESS_REVIEW = Resource(
    _AUTHORIZATION, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
REVIEWS = (TOKEN_REVIEW, SELF_SUBJECT_REVIEW, ACCESS_REVIEW, LOCAL_ACCESS_REVIEW, SELF_ACCESS_REVIEW)
