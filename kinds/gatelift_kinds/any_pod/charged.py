"""What follows from a worker's pod for its charge, so that an edit behind our back is recognised. Pure.

Values are small, since they are also written on the object: a long part stands as a digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gatelift_kinds.shared.digests import digest
from gatelift_kinds.shared.values import Charged
from gatelift_kube.objects.core import Pod


def of_pod(pod: Pod) -> Charged:
    """Return the requests of all its containers: `pods/resize` changes them in place."""
    spec = pod.spec
    asked = [[one.name, one.resources.requests] for one in (*spec.init_containers, *spec.containers)]
    whole = spec.resources.requests if spec.resources is not None else {}
    return {"resources": digest([asked, whole])}


class _Image(msgspec.Struct):
    image: Any = None


class _Uncharged(msgspec.Struct, rename="camel"):
    init_containers: tuple[_Image, ...] = ()
    containers: tuple[_Image, ...] = ()
    active_deadline_seconds: int | None = None
    tolerations: tuple[Any, ...] | None = None
    ephemeral_containers: tuple[Any, ...] | None = None


class _Pod(msgspec.Struct):
    spec: _Uncharged = msgspec.field(default_factory=_Uncharged)


_UNCHARGED = msgspec.json.Decoder(_Pod)


def uncharged(raw: bytes) -> Mapping[str, str]:
    """Return digests, by field, of what of a pod is changed in place, and charged for by nobody; what is empty has one.

    DecodeError where `raw` is no pod.
    """
    spec = _UNCHARGED.decode(raw).spec
    images = [[one.image for one in those] for those in (spec.init_containers, spec.containers)]
    return {
        "containers[*].image": digest(images),
        "activeDeadlineSeconds": digest(spec.active_deadline_seconds),
        "tolerations": digest(spec.tolerations or ()),
        "ephemeralContainers": digest(spec.ephemeral_containers or ()),
    }
