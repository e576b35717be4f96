"""Compiles `seccomp.json` into the filter program that bubblewrap loads.

The docker engine reads the profile itself; bubblewrap wants the kernel's own form: classic BPF over
`struct seccomp_data { int nr; u32 arch; u64 instruction_pointer; u64 args[6]; }`. Only what the
profile uses is understood, everything else is refused loudly.
Source: Linux `Documentation/userspace-api/seccomp_filter.rst` and `linux/bpf_common.h`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* of each machine name that we have system call numbers for."""
EPERM = 1
X32_BIT = 0x40000000

LOAD, AND, EQUAL, GREATER, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x25, 0x35, 0x06
ALLOW, ERRNO, KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
OFFSET_NUMBER, OFFSET_ARCHITECTURE, OFFSET_ARGUMENTS = 0, 4, 16

Instruction = tuple[int, int, int, int]
"""Operation, jump if true, jump if false, constant."""


def compile_filter(machine: str) -> bytes | None:
    """The program for a machine (`platform.machine()`); None where we have no numbers for it."""
    if machine not in ARCHITECTURES:
        return None
    numbers: dict[str, dict[str, int]] = json.loads((FOLDER / "syscalls.json").read_text())
    profile: dict[str, Any] = json.loads((FOLDER / "seccomp.json").read_text())
    program: list[Instruction] = [
        (LOAD, 0, 0, OFFSET_ARCHITECTURE),
        (EQUAL, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, KILL_PROCESS),
        (LOAD, 0, 0, OFFSET_NUMBER),
        (AT_LEAST, 0, 1, X32_BIT),
        (RETURN, 0, 0, ERRNO | EPERM),
    ]
    allowed: set[int] = set()
    special: dict[int, list[dict[str, Any]]] = {}
    for rule in profile["syscalls"]:
        known = [numbers[name][machine] for name in rule["names"] if machine in numbers[name]]
        if rule["action"] == "SCMP_ACT_ALLOW" and "args" not in rule:
            allowed.update(known)
        else:
            for number in known:
                special.setdefault(number, []).append(rule)
    for number, rules in sorted(special.items()):
        body = [instruction for rule in rules for instruction in _special(rule)]
        body.append((RETURN, 0, 0, ERRNO | EPERM))
        program += [(EQUAL, 0, len(body), number), *body]
    for first, last in _ranges(allowed):
        program += [
            (AT_LEAST, 0, 2, first),
            (GREATER, 2, 0, last),
            (RETURN, 0, 0, ALLOW),
            (RETURN, 0, 0, ERRNO | EPERM),
        ]
    program.append((RETURN, 0, 0, ERRNO | EPERM))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _special(rule: dict[str, Any]) -> list[Instruction]:
    """A refusal with its own error number, or permission where all conditions on arguments hold."""
    if rule["action"] == "SCMP_ACT_ERRNO":
        return [(RETURN, 0, 0, ERRNO | int(rule["errnoRet"]))]
    body: list[Instruction] = [(RETURN, 0, 0, ALLOW)]
    for condition in reversed(rule["args"]):
        body = [*_condition(condition, skip=len(body)), *body]
    return body


def _condition(condition: dict[str, Any], skip: int) -> list[Instruction]:
    """Skips so many instructions unless it holds.

    Only the low half of the argument is compared: the kernel takes all of these as 32-bit values.
    """
    load = (LOAD, 0, 0, OFFSET_ARGUMENTS + 8 * int(condition["index"]))
    if condition["op"] == "SCMP_CMP_EQ":
        return [load, (EQUAL, 0, skip, int(condition["value"]))]
    if condition["op"] == "SCMP_CMP_MASKED_EQ":
        mask, value = int(condition["value"]), int(condition["valueTwo"])
        return [load, (AND, 0, 0, mask), (EQUAL, 0, skip, value)]
    raise ValueError(f"seccomp.json has a comparison that cannot be compiled: {condition['op']}")


def _ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ranges
