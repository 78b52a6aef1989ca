"""The way of a write into the store: draft, webhooks, commit. Requests and stand-in controllers take the same one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from gatelift_kube.process.clock import Clock
from gatelift_sandbox.embedded.documents import Document
from gatelift_sandbox.embedded.drafts import Deleted, Deletion, Draft
from gatelift_sandbox.embedded.failures import RequestRefusedError, bad_request
from gatelift_sandbox.embedded.kinds import ServedKind
from gatelift_sandbox.embedded.rbac import User
from gatelift_sandbox.embedded.store import Store, patcher
from gatelift_sandbox.embedded.watches import Stored

OVERTAKEN_RETRIES_MAX = 5
"""While webhooks are asked, others may write. As a real API server: an update that names no version begins anew."""


class Reviewer(Protocol):
    """Who is asked between draft and commit; the webhooks."""

    async def review(self, draft: Draft, user: User, *, dry_run: bool) -> list[str]:
        """Change the draft or refuse it (ApiError); return warnings."""
        ...

    async def review_delete(self, kind: ServedKind, stored: Stored, user: User, *, dry_run: bool) -> list[str]:
        """Refuse a delete (ApiError) or not; return warnings."""
        ...


class Pipeline:
    """Writes to one store. Where nobody reviews, a write is one step that nothing else gets in between."""

    def __init__(self, store: Store, reviewer: Reviewer, wall: Clock) -> None:
        self.store = store
        self.wall = wall
        self._reviewer = reviewer

    async def create(
        self, user: User, kind: ServedKind, namespace: str, new: Any, *, dry_run: bool = False, strict: bool = False
    ) -> tuple[Stored, Draft, list[str]]:
        """Create an object; return it, its draft, and warnings. `strict` refuses unknown fields."""
        draft = self.store.draft_create(kind, namespace, new)
        _refuse_dropped(draft, strict=strict)
        warnings = await self._reviewer.review(draft, user, dry_run=dry_run)
        return self.store.commit(draft, self.wall(), dry_run=dry_run), draft, warnings

    async def update(
        self,
        user: User,
        kind: ServedKind,
        namespace: str,
        name: str,
        change: Callable[[Document], Any],
        *,
        subresource: str = "",
        patch: bool = False,
        dry_run: bool = False,
        strict: bool = False,
    ) -> tuple[Stored, Draft, list[str]]:
        """Change an object; return it, the draft (its `old` is None where it was created), and warnings."""
        attempt = 1
        while True:
            draft = self.store.draft_update(kind, namespace, name, change, subresource, patch=patch)
            _refuse_dropped(draft, strict=strict)
            warnings = await self._reviewer.review(draft, user, dry_run=dry_run)
            try:
                return self.store.commit(draft, self.wall(), dry_run=dry_run), draft, warnings
            except RequestRefusedError as failure:
                overtaken = failure.code == 409 and draft.unconditional
                if not overtaken or attempt == OVERTAKEN_RETRIES_MAX:
                    raise
                attempt += 1

    async def patch(
        self,
        user: User,
        kind: ServedKind,
        namespace: str,
        name: str,
        body: bytes,
        media_type: str,
        subresource: str = "",
    ) -> Stored:
        """Patch an object."""
        change = patcher(kind, body, media_type)
        return (await self.update(user, kind, namespace, name, change, subresource=subresource, patch=True))[0]

    async def delete(
        self, user: User, kind: ServedKind, namespace: str, name: str, deletion: Deletion, *, dry_run: bool = False
    ) -> tuple[Deleted, list[str]]:
        """Delete an object; return what became of it, and warnings."""
        stored = self.store.get(kind, namespace, name)
        warnings = await self._reviewer.review_delete(kind, stored, user, dry_run=dry_run)
        return self.store.delete(kind, namespace, name, deletion, self.wall(), dry_run=dry_run), warnings


def _refuse_dropped(draft: Draft, *, strict: bool) -> None:
    if strict and draft.dropped:
        unknown = ", ".join(f'unknown field "{path}"' for path in draft.dropped)
        resource = draft.kind.resource
        head = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        raise bad_request(f"{head}: strict decoding error: {unknown}")
