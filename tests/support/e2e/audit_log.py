"""What an API server's audit log says was written, and by which token: processes that share an account are told apart.

The sandbox's policy logs each request once, when it is answered, and the file is written before the answer leaves.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
CREDENTIAL = "authentication.kubernetes.io/credential-id"
"""Where an API server names the token of a ServiceAccount: `JTI=` and the token's own id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One request that wanted to change something."""

    credential: str
    verb: str
    resource: str
    name: str
    code: int

    @property
    def done(self) -> bool:
        """Whether the API server did it."""
        return self.code < 400


def credential(kubeconfig: Path) -> str:
    """Return the id of the token in a kubeconfig, as the audit log names it."""
    token: str = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    part = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return f"JTI={claims['jti']}"


def size(log: Path) -> int:
    """Return where the last whole line of the log ends at this moment: one may be half written."""
    return log.read_bytes().rfind(b"\n") + 1


def writes(log: Path, since: int = 0) -> list[Write]:
    """Return the writes logged after a place in the log; a last line that is cut short is left out."""
    with log.open("rb") as file:
        file.seek(since)
        lines = file.read().split(b"\n")[:-1]
    return list(_writes(json.loads(line) for line in lines))


def _writes(lines: Iterable[dict[str, Any]]) -> Iterable[Write]:
    for line in lines:
        if line["verb"] not in WRITES:
            continue
        about = line.get("objectRef", {})
        subresource = about.get("subresource")
        yield Write(
            credential=next(iter(line["user"].get("extra", {}).get(CREDENTIAL, ())), ""),
            verb=line["verb"],
            resource=about.get("resource", "") + (f"/{subresource}" if subresource else ""),
            name=about.get("name", ""),
            code=line.get("responseStatus", {}).get("code", 0),
        )
