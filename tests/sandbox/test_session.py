"""What the host does about a box that ended before it had begun a cell. Scripted boxes: nothing
else ends at that very moment."""

from __future__ import annotations

import pytest

from sandbox.errors import BoxLost
from sandbox.supervisor.spec import EXIT_NEVER_READY, EXIT_NO_KERNEL
from tests.sandbox.test_receipt import READY, done, fine, partial, run_one

NO_KERNEL = f"exit:{EXIT_NO_KERNEL}"


def dead(n: int) -> list[bytes]:
    return [READY] if n == 0 else [b""]


def test_a_box_without_a_kernel_costs_its_files_not_the_cell() -> None:
    first, second = run_one(
        dead,
        lambda n: fine(n + 1) if n else [READY],
        cause=NO_KERNEL,
    )
    assert (first.status, first.cause, first.kernel) == ("ok", None, "restarted")
    assert "files in the work directory are lost" in str(first.note)
    assert (second.status, second.kernel, second.note) == ("ok", "kept", None)


def test_a_box_that_ended_between_two_cells() -> None:
    """It is dead before the second is handed over, of what the first left."""
    first, second = run_one(
        lambda n: [READY] if n == 0 else [done(n), b""],
        lambda n: [READY] if n == 0 else [done(n + 2)],
        cause="out_of_memory",
    )
    assert (first.status, first.kernel) == ("ok", "kept")
    assert (second.status, second.kernel) == ("ok", "restarted")
    assert "box was replaced" in str(second.note)


def test_a_second_box_that_ends_is_the_cells_doing() -> None:
    first, second = run_one(
        dead, dead, lambda n: [READY] if n == 0 else [done(n + 2)], cause=NO_KERNEL
    )
    assert (first.status, first.cause, first.kernel) == ("died", NO_KERNEL, "restarted")
    assert second.status == "ok"


@pytest.mark.parametrize("cause", [None, f"exit:{EXIT_NEVER_READY}"])
def test_what_no_cell_did_is_not_tried_again(cause: str | None) -> None:
    with pytest.raises(BoxLost):
        run_one(dead, fine, cause=cause)


def test_what_began_is_not_run_twice() -> None:
    first, _ = run_one(
        lambda n: [READY] if n == 0 else [partial(), b""], fine, cause="out_of_memory"
    )
    assert (first.status, first.cause, first.text) == ("died", "out_of_memory", "so far")
