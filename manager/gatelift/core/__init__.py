"""Decides: one machine with one door, `machine.Machine.handle(event, now) -> commands`. No I/O, no clock."""
