"""Decides one review: looks up what the rules need, asks the kind, words the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from gatelift.webhooks import configuration, owned, queueing, review, sizes
from gatelift.webhooks.ancestors import Ancestors
from gatelift.webhooks.ancestry import NOBODYS, Ancestry, KnownKinds, OwnerStanding
from gatelift.webhooks.envelope import BadReviewError
from gatelift.webhooks.lanes import Decide, in_loop
from gatelift.webhooks.owners import Owners, OwnerUnknownError
from gatelift.webhooks.reservations import Reservations, ReservationUnknownError
from gatelift.webhooks.review import Question
from gatelift.webhooks.surroundings import Surroundings
from gatelift_kinds.kind import Kind
from gatelift_kinds.registry import SERVED, Registry
from gatelift_kinds.shared import markers, rules, unserved
from gatelift_kinds.shared.review import ErrorKind, FieldError, Verdict, WebhookFacts
from gatelift_kube.deciding.errors import UndecodableError
from gatelift_kube.decoding.decoding import read_object
from gatelift_kube.values.resources import Resource

CONTROLLERS = frozenset(name for each in SERVED.hooked for name in SERVED.hook(each).controllers)
"""Who makes the pods of what is queued, by username."""


class Judge:
    """Answers reviews. Holds no state of its own. `decide` calls what looks through a whole object (`lanes`)."""

    def __init__(
        self,
        surroundings: Surroundings,
        owners: Owners,
        reservations: Reservations,
        *,
        namespace: str,
        ancestors: Ancestors | None = None,
        external: KnownKinds | None = None,
        makers: frozenset[str] = frozenset(),
        kinds: Registry = SERVED,
    ) -> None:
        """`external`: with the kinds that controllers of others queue; `makers`: who is known to make their pods."""
        self._surroundings = surroundings
        self._owners = owners
        self._reservations = reservations
        self._namespace = namespace
        self._ancestors = ancestors
        self._external = external or KnownKinds()
        self._elsewhere = frozenset((each.kind, each.group) for each in self._external.external)
        self._makers = makers
        self._kinds = kinds

    async def mutate(self, name: str, question: Question, decide: Decide = in_loop, /) -> bytes:
        """Return the answer with the defaults of a new object, or with what of a change is put back."""
        kind, refused = self._kind(name, question)
        if kind is None:
            return refused
        if question.operation == "UPDATE":  # whoever owns the object: what it belongs to does not let it go
            correction = await decide(kind.corrected, question.old, question.new, self._facts(question))
            return review.allow(question.uid, correction.operations, correction.warnings)
        try:
            facts = await self._facts_of_new(kind, question)
        except OwnerUnknownError as error:
            return _unknown_owner(question, error)
        found = await self._ancestry(kind, question, facts)
        facts = _left_to_owner(facts, found)
        operations = await decide(kind.defaults, question.new, facts)
        if self._ancestors is None or not operations or not found.text:
            return review.allow(question.uid, operations)
        self._ancestors.tell(question, found)
        return review.allow(question.uid, operations, (f"metadata.ownerReferences: {found.text}",))

    async def validate(self, name: str, question: Question, decide: Decide = in_loop, /) -> bytes:
        """Return whether the object may be made or changed like this."""
        kind, refused = self._kind(name, question)
        if kind is None:
            return refused
        size = await _size(question, decide)
        if not size.allowed:
            return review.deny(question.uid, size)
        if question.operation == "UPDATE":
            try:
                kept = await self._reservations.kept_by(kind, question.namespace, question.old, question.new)
            except ReservationUnknownError as error:
                return _refuse(question, rules.label(markers.QUEUE_NAME), str(error))
            facts = replace(self._facts(question), reserved_by=kept.workload, runs_on=kept.cluster)
            verdict = await decide(kind.validate_update, question.old, question.new, facts)
        else:
            try:
                facts = await self._facts_of_new(kind, question)
            except OwnerUnknownError as error:
                return _unknown_owner(question, error)
            if self._ancestors is not None and self._ancestors.vouches(question):
                facts = _left_to_owner(facts, await self._ancestry(kind, question, facts))
            verdict = await decide(kind.validate_create, question.new, facts)
        if verdict.allowed:
            return review.allow(question.uid, warnings=verdict.warnings)
        return review.deny(question.uid, verdict)

    async def validate_size(self, name: str, question: Question, decide: Decide = in_loop, /) -> bytes:
        """Return whether an object has room left after a change; nothing else of it matters."""
        kind, refused = self._kind(name, question)
        if kind is None:
            return refused
        size = await _size(question, decide)
        return review.allow(question.uid) if size.allowed else review.deny(question.uid, size)

    async def validate_queueing(self, name: str, question: Question, decide: Decide = in_loop, /) -> bytes:
        """Return whether an object of Kueue's may be made or changed like this; nothing around it matters."""
        resource = configuration.SHOWN[name]
        if question.kind != resource.kind:
            raise _wrong_path(question, resource.kind)
        verdict = await decide(queueing.verdict, resource, question)
        if verdict.allowed:
            return review.allow(question.uid, warnings=verdict.warnings)
        return review.deny(question.uid, verdict)

    async def validate_unserved(self, _name: str, question: Question, decide: Decide = in_loop, /) -> bytes:
        """Return whether what makes pods may carry a queue's name as it does."""
        if question.kind not in unserved.BY_KIND:
            raise _wrong_path(question, " or ".join(unserved.BY_KIND))
        if question.problem:
            return review.malformed(question)
        facts = self._facts(question)
        verdict = await decide(
            unserved.verdict, question.kind, question.old, question.new, self._elsewhere, question.username
        )
        if not facts.namespace_selected:
            return review.allow(question.uid)
        if verdict.allowed:
            return review.allow(question.uid, warnings=verdict.warnings)
        return review.deny(question.uid, verdict)

    async def validate_owned(self, _name: str, question: Question, decide: Decide = in_loop, /) -> bytes:
        """Return whether an object of a kind that others queue may name the controller that it does."""
        if (question.kind, question.group) not in self._elsewhere:
            raise _wrong_path(question, " or ".join(sorted(kind for kind, _ in self._elsewhere)) or "nothing")
        verdict = await decide(owned.verdict, self._external, self._makers, question)
        if verdict.allowed or not self._facts(question).namespace_selected:
            return review.allow(question.uid)
        return review.deny(question.uid, verdict)

    def _kind(self, name: str, question: Question) -> tuple[Kind[Any] | None, bytes]:
        resource = configuration.HOOKED[name]
        if question.kind != resource.kind:
            raise _wrong_path(question, resource.kind)
        if question.problem:
            return None, review.malformed(question)
        try:
            kind = kind_of(self._kinds, resource, question)
        except UndecodableError as error:
            return None, review.malformed(replace(question, problem=str(error)))
        return kind, b"" if kind is not None else review.allow(question.uid)

    def _facts(self, question: Question) -> WebhookFacts:
        return self._surroundings.facts(question.namespace, by_agent=question.asked_by_gatelift(self._namespace))

    async def _facts_of_new(self, kind: Kind[Any], question: Question) -> WebhookFacts:
        """Return besides whose a new object is. Who made one that is there no change of it tells, and none asks."""
        facts = self._facts(question)
        if kind.pods_are_children:  # what makes pods makes pods and nothing else
            return facts
        made = question.username in CONTROLLERS
        queued = await self._owners.managed(question.namespace, question.new, by_controller=made)
        taken = self._surroundings.takes_pod(question.namespace, rules.marks(question.new))
        return replace(facts, owner_managed=queued and made, owner_claimed=queued and not made, pod_taken=taken)

    async def _ancestry(self, kind: Kind[Any], question: Question, facts: WebhookFacts) -> Ancestry:
        """Return whose business a pod is that would be queued, besides a Job's whose controller makes it."""
        settled = kind.pods_are_children or facts.owner_managed or facts.by_agent
        if self._ancestors is None or settled or not (facts.namespace_selected and facts.pod_taken):
            return NOBODYS
        return await self._ancestors.of(question)


def _left_to_owner(facts: WebhookFacts, found: Ancestry) -> WebhookFacts:
    return replace(facts, owner_managed=True) if found.standing is OwnerStanding.OWNERS else facts


def kind_of(kinds: Registry, resource: Resource, question: Question) -> Kind[Any] | None:
    """Return whose an object is: of a change, as it was before. It is read only where its resource does not tell it."""
    if not kinds.several(resource):
        return kinds.any_of(resource)
    return kinds.of(resource, read_object(resource, msgspec.json.encode(question.old or question.new)))


async def _size(question: Question, decide: Decide) -> Verdict:
    """Return whether an object has room left; hardly any is so large that it has to be looked through for that."""
    return await decide(sizes.verdict, question) if question.body_bytes > sizes.OBJECT_BYTES_MAX else Verdict()


def _wrong_path(question: Question, kind: str) -> BadReviewError:
    return BadReviewError(f"{question.kind or 'no kind'} was sent to the path of {kind}")


def _unknown_owner(question: Question, error: OwnerUnknownError) -> bytes:
    return _refuse(question, "metadata.ownerReferences", str(error))


def _refuse(question: Question, path: str, text: str) -> bytes:
    return review.deny(question.uid, Verdict(errors=(FieldError(kind=ErrorKind.FORBIDDEN, path=path, text=text),)))
