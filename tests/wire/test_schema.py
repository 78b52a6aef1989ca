import os
from pathlib import Path

from gatelift_wire.v1 import agent_pb2 as pb

KEPT = Path(__file__).with_name("schema_numbers.txt")


def numbers() -> list[str]:
    """List every field and enum value of the schema with its number, type and label."""
    lines = []
    for name, message in pb.DESCRIPTOR.message_types_by_name.items():
        lines += [
            f"{name}.{field.name} = {field.number} {_type(field)}{' repeated' if field.is_repeated else ''}"
            for field in message.fields
        ]
    for name, enum in pb.DESCRIPTOR.enum_types_by_name.items():
        lines += [f"{name}.{value.name} = {value.number}" for value in enum.values]
    return sorted(lines)


def _type(field: object) -> str:
    kind = getattr(field, "message_type", None) or getattr(field, "enum_type", None)
    return kind.name if kind is not None else f"type {getattr(field, 'type', 0)}"


def test_numbers_and_types_of_the_schema_are_for_ever() -> None:
    """A line may be added; one that is gone or differs breaks agents that are not upgraded yet."""
    if os.environ.get("GATELIFT_RECORD") == "1":
        KEPT.write_text("\n".join(numbers()) + "\n")
    assert set(KEPT.read_text().splitlines()) == set(numbers())


def test_the_services_are_those_that_adapters_serve() -> None:
    session = pb.DESCRIPTOR.services_by_name["AgentService"].methods_by_name["Session"]
    enroll = pb.DESCRIPTOR.services_by_name["EnrolService"].methods_by_name["Enroll"]
    assert (session.input_type.name, session.output_type.name) == ("AgentMessage", "ManagerMessage")
    assert (session.client_streaming, session.server_streaming) == (True, True)
    assert (enroll.input_type.name, enroll.output_type.name) == ("EnrollRequest", "EnrollResponse")
