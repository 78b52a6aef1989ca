"""Frames as values to frames as bytes and back. The only reader and writer of the generated types but for enrolment.

Total both ways: every value of `messages` has its converter, made from the class's own annotations and checked against
the schema when this module is imported; whatever comes is either a `Frame` within all limits (`rules`) or one typed
`WireViolation` that names the field and the rule. Adapters hand gRPC bytes, never generated types, so that nothing that
a peer writes is decoded outside of here. Neighbours: `rules`.
"""

from __future__ import annotations

import dataclasses
import enum
import operator
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.message import DecodeError, EncodeError, Message

from gatelift_wire.encoding.pieces import PIECE_BYTES, Header, MalformedError, Pieces, TooManyError, fields, header
from gatelift_wire.v1 import agent_pb2 as pb
from gatelift_wire.values import limits, messages
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.rules import check_message, check_numbers, measure
from gatelift_wire.values.violations import TooLarge, WireViolation

Convert = Callable[[Any], Any]


def encode_from_agent(frame: messages.Frame) -> bytes:
    """Return a frame of an agent as bytes. Raises `WireViolation` or `TooLarge` if the peer could not take it."""
    return _encode(_AGENT, frame)


def decode_from_agent(data: bytes) -> messages.Frame:
    """Return the frame that an agent wrote. Raises `WireViolation` or `TooLarge`, nothing else."""
    return _decode(_AGENT, data)


def header_from_agent(data: bytes) -> Header:
    """Return what a frame of an agent says of itself; nothing is made of the rest.

    Raises `WireViolation` or `TooLarge`: bytes that are no frame, too many of them, or too many items.
    """
    return _header(_AGENT, data)


def controls_from_agent(data: bytes) -> messages.Frame:
    """Return the frame that an agent wrote without its messages. Raises `WireViolation` or `TooLarge`."""
    return _decode(_AGENT, data, bare=True)


def encode_from_manager(frame: messages.Frame) -> bytes:
    """Return a frame of the manager as bytes. Raises `WireViolation` or `TooLarge` if the peer could not take it."""
    return _encode(_MANAGER, frame)


def decode_from_manager(data: bytes) -> messages.Frame:
    """Return the frame that the manager wrote. Raises `WireViolation` or `TooLarge`, nothing else."""
    return _decode(_MANAGER, data)


def join_from_agent(frames: Sequence[bytes], sequence: int) -> bytes:
    """Return one frame with the messages of several, which follow each other and have no controls.

    `sequence` is that of the first; session and acknowledgement are those of the last.
    """
    return _join(_AGENT, frames, sequence)


def join_from_manager(frames: Sequence[bytes], sequence: int) -> bytes:
    """Do the same for frames of the manager."""
    return _join(_MANAGER, frames, sequence)


# --- one value -----------------------------------------------------------------------------------------------------


class _Record:
    """Converter of one class of values to and from its generated type of the same name.

    To the wire it makes a dictionary, which the generated type of the whole frame takes at once: that is half the work
    of one generated object for each part. From the wire it reads all plain fields in one go.
    """

    def __init__(self, value_class: type, schema: type[Message]) -> None:
        self.value_class = value_class
        self.schema = schema
        hints = typing.get_type_hints(value_class)
        fields = [_Field(name, hints[name], schema) for name in _names(value_class)]
        declared = {field.name for field in schema.DESCRIPTOR.fields}
        known = {field.name for field in fields}
        if declared != known:
            raise TypeError(f"{value_class.__name__}: schema and value differ in {sorted(declared ^ known)}")
        self._said_plainly = _Plain([field.name for field in fields if field.said_plainly])
        self._said = [(field.name, field.to_wire) for field in fields if not field.said_plainly]
        self.lists = tuple((field.name, field.item) for field in fields if field.many)
        self._read_plainly = _Plain([field.name for field in fields if field.read_plainly])
        self._read = [(field.name, field.from_wire) for field in fields if not field.read_plainly]

    def to_wire(self, value: Any) -> dict[str, Any]:
        """Build what the generated type is made from."""
        filled = self._said_plainly(value)
        for name, to_wire in self._said:
            content = getattr(value, name)
            if content is not None:
                filled[name] = to_wire(content)
        return filled

    def parts(self, message: Any) -> int:
        """Return how many items its lists have, and the lists in those."""
        count = 0
        for name, item in self.lists:
            items = getattr(message, name)
            count += len(items)
            if item is not None and item.lists and count <= limits.FRAME_PARTS_MAX:
                count += sum(map(item.parts, items))
        return count

    def from_wire(self, message: Any) -> Any:
        """Build the value; limits are looked at afterwards, by `rules.measure`."""
        filled = self._read_plainly(message)
        name = ""
        try:
            for name, from_wire in self._read:
                filled[name] = from_wire(message)
        except WireViolation as violation:
            raise violation.within(name) from None
        return self.value_class(**filled)


class _TupleRecord(_Record):
    """The same for a named tuple, all of whose fields are plain: a placement's key, which nearly every message has."""

    def __init__(self, value_class: type, schema: type[Message]) -> None:
        super().__init__(value_class, schema)
        if self._said or self._read:
            raise TypeError(f"{value_class.__name__}: a named tuple must have plain fields only")
        self._names = _names(value_class)
        self._get = operator.attrgetter(*self._names)

    def to_wire(self, value: Any) -> dict[str, Any]:
        """Build what the generated type is made from."""
        return dict(zip(self._names, value, strict=True))

    def from_wire(self, message: Any) -> Any:
        """Build the value."""
        return self.value_class(*self._get(message))


def _names(value_class: Any) -> tuple[str, ...]:
    """Return the fields of a class of values, in order."""
    if issubclass(value_class, tuple):
        names: tuple[str, ...] = value_class._fields  # named tuples have no other word for them
        return names
    return tuple(field.name for field in dataclasses.fields(value_class))


def _is_value(hint: Any) -> bool:
    return isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "_fields"))


class _Plain:
    """Reads attributes that need no conversion, all at once."""

    __slots__ = ("_get", "_names")

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._get: Convert | None = operator.attrgetter(*names) if names else None

    def __call__(self, owner: Any) -> dict[str, Any]:
        if self._get is None:
            return {}
        found = self._get(owner)
        return dict(zip(self._names, found, strict=True)) if len(self._names) > 1 else {self._names[0]: found}


class _Field:
    """Converter of one field, chosen by its annotation."""

    __slots__ = ("from_wire", "item", "many", "name", "read_plainly", "said_plainly", "to_wire")

    def __init__(self, name: str, hint: Any, schema: type[Message]) -> None:
        self.name = name
        inner, optional = _without_none(hint)
        self.to_wire: Convert = _same
        self.from_wire: Convert
        self.said_plainly = self.read_plainly = self.many = False
        self.item: _Record | None = None
        if typing.get_origin(inner) is tuple:
            self._many(typing.get_args(inner)[0])
        elif isinstance(inner, type) and issubclass(inner, enum.Enum):
            self._choice(inner, optional=optional)
        elif _is_value(inner):
            self._part(_record(inner), optional=optional)
        elif optional:
            self.from_wire = lambda message: getattr(message, name) if message.HasField(name) else None
        else:
            self.from_wire = operator.attrgetter(name)
            self.said_plainly = self.read_plainly = True
        if name not in schema.DESCRIPTOR.fields_by_name:
            raise TypeError(f"{schema.__name__}.{name}: not in the schema")

    def _part(self, record: _Record, *, optional: bool) -> None:
        name = self.name

        def from_wire(message: Any) -> Any:
            part = getattr(message, name) if message.HasField(name) else None
            if part is None and not optional:
                raise WireViolation("", "must be there")
            return None if part is None else record.from_wire(part)

        self.to_wire, self.from_wire = record.to_wire, from_wire

    def _choice(self, values: type[enum.Enum], *, optional: bool) -> None:
        name, numbers = self.name, _enum_numbers(values)
        members = {number: member for member, number in numbers.items()}

        def from_wire(message: Any) -> Any:
            number = getattr(message, name)
            if number == 0 and optional:
                return None
            if number not in members:
                raise WireViolation("", f"must be one of {', '.join(m.value for m in values)}; number {number} came")
            return members[number]

        self.to_wire, self.from_wire = numbers.__getitem__, from_wire

    def _many(self, item: Any) -> None:
        name = self.name
        to_item, from_item = _item(item)
        self.many, self.item = True, _record(item) if _is_value(item) else None

        def from_wire(message: Any) -> Any:
            items = getattr(message, name)
            if from_item is _same:
                return tuple(items)
            found = []
            for index, one in enumerate(items):
                try:
                    found.append(from_item(one))
                except WireViolation as violation:
                    raise violation.within(f"[{index}]") from None
            return tuple(found)

        self.to_wire = list if to_item is _same else lambda items: [to_item(one) for one in items]
        self.from_wire = from_wire


def _same(value: Any) -> Any:
    return value


def _without_none(hint: Any) -> tuple[Any, bool]:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        rest = [one for one in typing.get_args(hint) if one is not type(None)]
        if len(rest) == 1:
            return rest[0], True
    return hint, False


def _item(item: Any) -> tuple[Convert, Convert]:
    """Choose the converters of one item of a list."""
    if typing.get_origin(item) is tuple:
        if typing.get_args(item)[1] is int:
            return (
                lambda pair: {"name": pair[0], "amount": pair[1]},
                lambda one: (one.name, one.amount),
            )
        return lambda pair: {"name": pair[0], "text": pair[1]}, lambda one: (one.name, one.text)
    if _is_value(item):
        record = _record(item)
        return record.to_wire, record.from_wire
    return _same, _same


def _enum_numbers(values: type[enum.Enum]) -> dict[enum.Enum, int]:
    """Map the members to the numbers of the schema's enum of the same name; both must have the same members."""
    descriptor = pb.DESCRIPTOR.enum_types_by_name[values.__name__]
    prefix = descriptor.values_by_number[0].name.removesuffix("UNSPECIFIED")
    numbers: dict[enum.Enum, int] = {}
    for member in values:
        declared = descriptor.values_by_name.get(prefix + member.name)
        if declared is None:
            raise TypeError(f"{values.__name__}.{member.name}: not in the schema")
        numbers[member] = declared.number
    if len(descriptor.values) != len(numbers) + 1:
        raise TypeError(f"{values.__name__}: the schema has members that the value has not")
    return numbers


_RECORDS: dict[type, _Record] = {}


def _record(value_class: type) -> _Record:
    if value_class not in _RECORDS:
        of = _TupleRecord if issubclass(value_class, tuple) else _Record
        _RECORDS[value_class] = of(value_class, getattr(pb, value_class.__name__))
    return _RECORDS[value_class]


# --- frames --------------------------------------------------------------------------------------------------------


class _Choices:
    """A `oneof` of the schema: which member holds which class of values."""

    def __init__(self, schema: type[Message]) -> None:
        self._name = schema.__name__
        self._by_class: dict[type, tuple[str, _Record]] = {}
        self._by_member: dict[str, _Record] = {}
        for field in schema.DESCRIPTOR.oneofs_by_name["kind"].fields:
            record = _record(getattr(messages, field.message_type.name if field.message_type else ""))
            self._by_class[record.value_class] = (field.name, record)
            self._by_member[field.name] = record

    @property
    def classes(self) -> frozenset[type]:
        """All classes of values that travel here."""
        return frozenset(self._by_class)

    def to_wire(self, value: Any) -> dict[str, Any]:
        found = self._by_class.get(type(value))
        if found is None:
            raise WireViolation(type(value).__name__, f"has no place in {self._name}")
        member, record = found
        return {member: record.to_wire(value)}

    def parts(self, message: Any) -> int:
        """Return how many items the lists of what it holds have."""
        record = self._by_member.get(message.WhichOneof("kind"))
        return record.parts(getattr(message, message.WhichOneof("kind"))) if record is not None else 0

    def from_wire(self, message: Any) -> Any:
        member = message.WhichOneof("kind")
        if member is None:
            raise WireViolation("", f"must be one of {', '.join(self._by_member)}")
        record = self._by_member[member]
        try:
            return record.from_wire(getattr(message, member))
        except WireViolation as violation:
            raise violation.within(record.value_class.__name__) from None


class _Direction:
    """How frames travel in one direction."""

    def __init__(self, schema: type[Message], control: type[Message], body: type[Message], body_field: str) -> None:
        self.schema = schema
        self.control = _Choices(control)
        self.body = _Choices(body)
        self.body_field = body_field
        numbers = {field.name: field.number for field in schema.DESCRIPTOR.fields}
        self.has_term = "term" in numbers
        self.body_number = numbers[body_field]
        self.numbers = numbers["session"], numbers["sequence"], numbers["control"], self.body_number


def _encode(direction: _Direction, frame: messages.Frame) -> bytes:
    if frame.term and not direction.has_term:
        raise WireViolation("Frame.term", "must be 0 in a frame of an agent")
    try:
        filled: dict[str, Any] = {
            "session": frame.session,
            "sequence": frame.sequence,
            "acknowledged": frame.acknowledged,
            "control": [direction.control.to_wire(one) for one in frame.control] if frame.control else (),
            direction.body_field: [direction.body.to_wire(one) for one in frame.messages],
        }
        if direction.has_term:
            filled["term"] = frame.term
        data: bytes = direction.schema(**filled).SerializeToString()
    except (ValueError, TypeError, EncodeError) as error:  # a number out of range, a text that is not Unicode
        measure(frame)
        raise WireViolation("Frame", f"cannot be encoded: {error}") from None
    if len(data) > limits.FRAME_BYTES_MAX:
        raise TooLarge("Frame", f"must have at most {limits.FRAME_BYTES_MAX} bytes, has {len(data)}")
    return data


def _join(direction: _Direction, frames: Sequence[bytes], sequence: int) -> bytes:
    """In protobuf, messages one after the other are one: lists go on, and of a number the last word counts."""
    number: bytes = direction.schema(sequence=sequence).SerializeToString()
    return b"".join((*frames, number))


def _header(direction: _Direction, data: bytes) -> Header:
    if len(data) > limits.FRAME_BYTES_MAX:
        raise TooLarge("Frame", f"must have at most {limits.FRAME_BYTES_MAX} bytes, has {len(data)}")
    try:
        found = header(data, direction.numbers)
    except MalformedError:
        raise _invalid(direction) from None
    except TooManyError:
        raise TooLarge("Frame", f"must have at most {limits.FRAME_FIELDS_MAX} fields") from None
    _count("control", found.controls, limits.FRAME_CONTROLS_MAX)
    _count("messages", found.messages, limits.FRAME_MESSAGES_MAX)
    return found


def _invalid(direction: _Direction) -> WireViolation:
    return WireViolation("Frame", f"is not a valid {direction.schema.__name__} of {pb.DESCRIPTOR.package}")


def _decode(direction: _Direction, data: bytes, *, bare: bool = False) -> messages.Frame:
    message = _parsed(direction, data, bare=bare)
    body = getattr(message, direction.body_field)
    frame = messages.Frame(
        session=message.session,
        term=message.term if direction.has_term else 0,
        sequence=message.sequence,
        acknowledged=message.acknowledged,
        control=_choices("control", direction.control, message.control),
        messages=_choices("messages", direction.body, body),
    )
    check_numbers(frame)
    for control in frame.control:
        measure(control)
    for one in frame.messages:
        check_message(one)
    return frame


def _parsed(direction: _Direction, data: bytes, *, bare: bool) -> Any:
    """Return a frame as its generated type, within its limits of items, or without its messages."""
    if len(data) > PIECE_BYTES:
        _header(direction, data)
    message: Any = direction.schema()
    try:
        if bare:
            kept = (one for one in fields(data, 0, len(data)) if one.number != direction.body_number)
            data = b"".join(data[one.first : one.end] for one in kept)
        if len(data) <= PIECE_BYTES:
            message.ParseFromString(data)
        else:
            _parse_in_pieces(direction, message, data)
    except (DecodeError, MalformedError):
        raise _invalid(direction) from None
    except TooManyError:
        raise _too_many_parts() from None
    body = getattr(message, direction.body_field)
    _count("control", len(message.control), limits.FRAME_CONTROLS_MAX)
    _count("messages", len(body), limits.FRAME_MESSAGES_MAX)
    _count_parts(direction, message.control, body)
    return message


def _parse_in_pieces(direction: _Direction, message: Any, data: bytes) -> None:
    """Parse a large frame, and refuse it as soon as it has too many parts: until then they take memory."""
    pieces = Pieces(data)
    body = getattr(message, direction.body_field)
    begin = count = controls = items = 0
    for one in fields(data, 0, len(data)):
        if one.end - begin < PIECE_BYTES and one.end < len(data):
            continue
        pieces.merge(message, begin, one.end)
        begin = one.end
        count += _count_parts(direction, message.control[controls:], body[items:], count)
        controls, items = len(message.control), len(body)


def _count(name: str, items: int, most: int) -> None:
    if items > most:
        raise TooLarge(f"Frame.{name}", f"must have at most {most} items, has {items}")


def _count_parts(direction: _Direction, control: Any, body: Any, before: int = 0) -> int:
    """Return how long the lists of these items are; refuse more in one frame than any honest one has."""
    count = 0
    for choices, items in ((direction.control, control), (direction.body, body)):
        for item in items:
            count += choices.parts(item)
            if before + count > limits.FRAME_PARTS_MAX:
                raise _too_many_parts()
    return count


def _too_many_parts() -> TooLarge:
    return TooLarge("Frame", f"must have at most {limits.FRAME_PARTS_MAX} items in its lists")


def _choices(name: str, choices: _Choices, items: Any) -> tuple[Any, ...]:
    found = []
    for index, item in enumerate(items):
        try:
            found.append(choices.from_wire(item))
        except WireViolation as violation:
            if not violation.field:
                raise violation.within(f"Frame.{name}[{index}]") from None
            raise
    return tuple(found)


_AGENT = _Direction(pb.AgentMessage, pb.AgentControl, pb.Report, "reports")
_MANAGER = _Direction(pb.ManagerMessage, pb.ManagerControl, pb.Command, "commands")

KNOWN = frozenset(_RECORDS) | {PlacementKey, messages.Frame}
"""Classes of values that this codec converts (a test compares them with those of `messages`)."""
