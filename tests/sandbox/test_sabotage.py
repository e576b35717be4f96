"""A cell that works against its box: what it gets is its own doing, named, and shown; the next cell
works. Run on every wall, in one box each."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from sandbox.outputs import Error
from sandbox.spec import Limits
from sandbox.supervisor.spec import EXIT_NEVER_READY
from tests.conftest import available_wall
from tests.sandbox.boxes import Cells, opened, stdout

WALLS = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    "process",
]
LIMITS = Limits(
    memory_mb=1024, pids=64, work_mb=300, tmp_mb=48, shm_mb=16, cell_seconds=15, grace_seconds=1.0
)


@pytest.fixture(scope="module", params=WALLS)
def cells(request: pytest.FixtureRequest) -> Generator[Cells]:
    with opened(available_wall(request.param), limits=LIMITS) as box:
        yield box


@pytest.fixture(autouse=True)
def still_works(cells: Cells) -> Generator[None]:
    yield
    assert cells.text("print('still here')") == "still here"


ERRORS = {
    "surrogate": ("raise Exception('a\\ud800')", "Exception", "a\\ud800"),
    "no streams": (
        "import sys\nsys.stdout = sys.stderr = None\n1/0",
        "ZeroDivisionError",
        "division",
    ),
    "cycle": (
        "a, b = ValueError('last'), KeyError(2)\na.__cause__, b.__cause__ = b, a\nraise a",
        "ValueError",
        "last",
    ),
    "long chain": (
        "e = None\nfor i in range(20000):\n"
        "    n = ValueError(i); n.__context__ = e; e = n\nraise e",
        "ValueError",
        "19999",
    ),
    "group": (
        "raise ExceptionGroup('both', [ValueError(1), TypeError('x')])",
        "ExceptionGroup",
        "both",
    ),
    "task group": (
        "import asyncio\nasync def f(): 1/0\n"
        "async with asyncio.TaskGroup() as g: g.create_task(f())",
        "ExceptionGroup",
        "TaskGroup",
    ),
    "text that raises": (
        "class E(Exception):\n    def __str__(self): raise self\nraise E()",
        "E",
        "cannot be made",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_every_exception_is_an_error_output(cells: Cells, case: str) -> None:
    code, name, words = ERRORS[case]
    execution = cells.run(code)
    found = [o for o in execution.outputs if isinstance(o, Error)]
    assert (execution.status, execution.kernel) == ("error", "kept")
    assert found, execution
    assert found[0].name == name
    assert words in found[0].message
    assert name in found[0].traceback


def test_a_group_shows_what_is_in_it(cells: Cells) -> None:
    (found,) = cells.run("raise ExceptionGroup('g', [ValueError('inner one')])").outputs
    assert isinstance(found, Error)
    assert "inner one" in found.traceback


def test_a_process_whose_first_thread_has_ended_is_ended_with_its_cell(cells: Cells) -> None:
    execution = cells.run(
        """
        import ctypes, os, threading, time
        kernel = os.getpid()
        if os.fork() == 0:
            os.setsid()
            def ghost():
                while True:
                    time.sleep(0.02)
                    try:
                        open(f"/proc/{kernel}/fd/1", "w").write("GHOST\\n")
                    except OSError:
                        pass
            threading.Thread(target=ghost).start()
            ctypes.CDLL(None).syscall(60, 0)  # exit of this thread alone
        time.sleep(0.2)
        """
    )
    assert "Ended with the cell: 1 process" in str(execution.note)
    later = cells.run("import time; time.sleep(0.2); print('mine')")
    assert stdout(later) == "mine\n"


def test_more_picture_bytes_than_a_frame_holds(cells: Cells) -> None:
    execution = cells.run(
        """
        from PIL import Image
        for i in range(4):
            Image.new("RGB", (2, 2), (i, 0, 0)).save(f"p{i}.png")
            with open(f"p{i}.png", "ab") as file:
                file.write(bytes(60_000_000))
        """
    )
    assert (execution.status, execution.kernel) == ("ok", "kept")
    assert "larger than" in str(execution.note)
    assert "decoded" not in str(execution.note)
    assert (len(execution.pictures), execution.dropped.pictures) == (1, 3)
    cells.run("import os\nfor i in range(4): os.remove(f'p{i}.png')")


def test_a_malformed_message_signed_by_the_kernel(cells: Cells) -> None:
    cells.run("kept = 5")
    execution = cells.run(
        """
        import time
        kernel = get_ipython().kernel
        for version in (5, None, [], {}):
            message = kernel.session.msg("status", {"execution_state": "idle"})
            message["header"]["version"] = version
            kernel.session.send(kernel.iopub_socket, message)
        time.sleep(0.2)
        print("survived")
        """
    )
    assert stdout(execution) == "survived\n"
    assert cells.text("print(kept)") == "5"


@pytest.mark.parametrize("number", [1, 2, 10, 12, 15, 17])
def test_signals_to_the_supervisor_do_nothing(cells: Cells, number: int) -> None:
    if cells.wall.name == "process":
        pytest.skip("the process wall's supervisor is an ordinary process of this user")
    cells.run("kept = 6")
    assert cells.text(f"import os, time; os.kill(1, {number}); time.sleep(0.1); print(kept)") == "6"


def test_stopped_zygotes_go_on(cells: Cells) -> None:
    if cells.wall.name == "process":
        pytest.skip("it would stop processes of the host")
    execution = cells.run(
        """
        import os, signal
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in (1, os.getpid()):
                try:
                    os.kill(int(name), signal.SIGSTOP)
                except OSError:
                    pass
        os._exit(1)
        """
    )
    assert (execution.status, execution.cause) == ("died", "exit:1")
    assert cells.text("print(1)") == "1"


def test_names_of_sockets_cannot_be_taken_beforehand(cells: Cells) -> None:
    if cells.wall.name == "process":
        pytest.skip("it would write to the host's temporary folder")
    cells.run("open('file.txt', 'w').write('kept')")
    execution = cells.run(
        """
        import glob, os, shutil
        for folder in glob.glob("/tmp/.*"):
            if glob.glob(f"{folder}/matplotlib"):
                shutil.rmtree(folder)
                open(folder, "w").close()
                continue
            for k in range(2, 60):
                for n in range(1, 6):
                    os.makedirs(f"{folder}/k{k}-{n}", exist_ok=True)
        os._exit(3)
        """
    )
    assert execution.cause == "exit:3"
    assert cells.text("print(open('file.txt').read())") == "kept"


def test_a_kernel_that_no_longer_answers_is_replaced(cells: Cells) -> None:
    cells.run("get_ipython().kernel.do_execute = None")
    found = [cells.run("print('?')") for _ in range(3)]
    assert any(e.kernel == "restarted" for e in found), found
    assert all(e.status != "ok" or stdout(e) == "?\n" for e in found)


def test_a_kernel_cannot_pass_for_a_box_that_never_had_one(cells: Cells) -> None:
    execution = cells.run(f"import os; os._exit({EXIT_NEVER_READY})")
    assert (execution.status, execution.cause) == ("died", f"exit:{EXIT_NEVER_READY}")
