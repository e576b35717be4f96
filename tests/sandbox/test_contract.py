"""One contract, every wall: what a cell may rely on and what it cannot break.

The boxes have small limits, so that hostile cells end quickly and cannot hurt the machine. Where a
wall cannot enforce something it must say so in `enforced()`; the test then checks the words.
"""

from __future__ import annotations

import io
import os
from collections.abc import Generator

import pytest
from PIL import Image

from sandbox.outputs import Display, Stream
from sandbox.spec import InputFile
from tests.conftest import available_wall
from tests.sandbox.boxes import Cells, error, opened, stdout

SECRET = "sk-not-for-boxes-5b1f"
WALLS = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    "process",
]


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (60, 40), (10, 200, 30)).save(buffer, "PNG")
    return buffer.getvalue()


INPUT = InputFile("image_1.png", picture())


@pytest.fixture(scope="module", params=WALLS)
def cells(request: pytest.FixtureRequest) -> Generator[Cells]:
    wall = available_wall(request.param)
    os.environ["OPENAI_API_KEY"] = SECRET
    try:
        with opened(wall, inputs=(INPUT,), seed=7) as box:
            yield box
    finally:
        del os.environ["OPENAI_API_KEY"]


# --- an ordinary notebook -------------------------------------------------------------------------


def test_the_libraries_are_there_before_the_first_cell(cells: Cells) -> None:
    cells.preloaded()
    loaded = cells.text(
        "import sys; print([n in sys.modules for n in ('numpy', 'cv2', 'skimage', 'scipy')])"
    )
    assert loaded == "[True, True, True, True]"


def test_variables_last_and_the_last_expression_is_shown(cells: Cells) -> None:
    assert cells.run("kept = 41").outputs == ()
    assert cells.run("kept + 1").outputs == (Display("text/plain", b"42"),)
    assert cells.run("kept;").outputs == ()


@pytest.mark.parametrize("code", ["", "   ", "# a comment"])
def test_nothing_gives_nothing(cells: Cells, code: str) -> None:
    execution = cells.run(code)
    assert (execution.status, execution.outputs, execution.kernel) == ("ok", (), "kept")


def test_streams_stay_apart_and_in_order(cells: Cells) -> None:
    execution = cells.run(
        """
        import subprocess, sys
        print("one")
        print("two", file=sys.stderr)
        subprocess.run(["echo", "three"])
        subprocess.run("echo four >&2", shell=True)
        _ = sys.stdout.write("five")
        """
    )
    assert execution.outputs[:2] == (Stream("stdout", "one\n"), Stream("stderr", "two\n"))
    assert stdout(execution) == "one\nthree\nfive"
    assert "four\n" in execution.text


def test_an_exception_keeps_what_was_printed(cells: Cells) -> None:
    execution = cells.run("print('before')\n1/0")
    assert execution.status == "error"
    assert execution.cause is None
    assert execution.outputs[0] == Stream("stdout", "before\n")
    failure = error(execution)
    assert (failure.name, failure.message) == ("ZeroDivisionError", "division by zero")
    assert "----> 2 1/0" in failure.traceback
    assert "\x1b" not in failure.traceback


def test_a_syntax_error_is_an_error(cells: Cells) -> None:
    assert error(cells.run("def (")).name == "SyntaxError"


def test_top_level_await(cells: Cells) -> None:
    assert cells.text("import asyncio\nawait asyncio.sleep(0.01)\nprint('waited')") == "waited"


def test_measured_from_outside(cells: Cells) -> None:
    execution = cells.run(
        """
        import time
        block = bytearray(64 * 1024 * 1024)
        end = time.process_time() + 0.3
        while time.process_time() < end: pass
        del block
        """
    )
    assert execution.cpu_seconds >= 0.25
    assert execution.seconds >= 0.25
    assert execution.peak_mb >= 64


def test_the_seed_and_the_hashes_are_fixed(cells: Cells) -> None:
    code = """
        import random, sys
        import numpy as np
        print(random.random(), np.random.rand(), sys.flags.hash_randomization)
    """
    with opened(cells.wall, seed=7) as one, opened(cells.wall, seed=7) as two:
        first = one.text(code)
        assert first == two.text(code)
    with opened(cells.wall, seed=8) as other:
        assert first != other.text(code)
    assert first.endswith(" 0")


# --- pictures -------------------------------------------------------------------------------------

PLOT = "import matplotlib.pyplot as plt\nfig, ax = plt.subplots(figsize=(2, 1))\nax.plot([1, 2])\n"
SHOWN = {
    "show": (PLOT + "plt.show()", 1),
    "left open": (PLOT, 1),
    "shown and last expression": (PLOT + "fig", 1),
    "two figures": (PLOT + PLOT + "ax.plot([3, 1])\nplt.show()", 2),
    "under Agg": ("import matplotlib\nmatplotlib.use('Agg')\n" + PLOT + "plt.show()", 1),
    "under SVG": ("import matplotlib\nmatplotlib.use('svg')\n" + PLOT + "plt.show()", 1),
    "inline magic": ("%matplotlib inline\n" + PLOT, 1),
    "figure.show": (PLOT + "fig.show()", 1),
    "drawn before an error": (PLOT + "1/0", 1),
    "closed": (PLOT + "plt.close(fig)", 0),
    "empty": ("import matplotlib.pyplot as plt\nplt.figure()", 0),
    "display": ("from PIL import Image\ndisplay(Image.new('RGB', (9, 5)))", 1),
    "last expression": ("from PIL import Image\nImage.new('RGB', (9, 5))", 1),
    "Image.show": ("from PIL import Image\nImage.new('RGB', (9, 5)).show()", 1),
    "imshow": ("import cv2, numpy as np\ncv2.imshow('w', np.zeros((5, 9, 3), 'u1'))", 1),
    "wait for a key": ("import cv2\ncv2.waitKey(0)\ncv2.destroyAllWindows()", 0),
    "saved": ("from PIL import Image\nImage.new('RGB', (9, 5), 'red').save('saved.png')", 1),
    "saved as BMP": ("from PIL import Image\nImage.new('RGB', (9, 5)).save('saved.bmp')", 1),
    "palette": ("from PIL import Image\nImage.new('P', (9, 5))", 1),
    "same twice": ("from PIL import Image\nfor _ in 1, 2: display(Image.new('RGB', (9, 5)))", 1),
    "cleared": (
        "from IPython.display import clear_output\nfrom PIL import Image\n"
        "for n in range(9):\n    clear_output(wait=True)\n    display(Image.new('L', (9, 5), n))",
        1,
    ),
    "updated": (
        "from PIL import Image\nh = display(display_id=True)\n"
        "for n in range(5): h.update(Image.new('L', (9, 5), n))",
        1,
    ),
    "without pixels": ("from PIL import Image\nImage.new('RGB', (0, 5))", 0),
}


@pytest.mark.parametrize("name", SHOWN)
def test_pictures(cells: Cells, name: str) -> None:
    code, count = SHOWN[name]
    execution = cells.run(code)
    assert len(execution.pictures) == count, execution
    assert execution.dropped.pictures == 0
    for shown in execution.pictures:
        with Image.open(io.BytesIO(shown.data)) as image:
            assert image.size == (shown.width, shown.height)
            assert shown.mime == "image/png"


def test_text_and_pictures_in_order(cells: Cells) -> None:
    execution = cells.run(
        """
        from PIL import Image
        print("before")
        display(Image.new("RGB", (4, 4)))
        print("between")
        display(Image.new("RGB", (5, 5)))
        print("after")
        """
    )
    kinds = [o.text if isinstance(o, Stream) else "picture" for o in execution.outputs]
    assert kinds == ["before\n", "picture", "between\n", "picture", "after\n"]


def pixels(shown: Display) -> list[tuple[int, ...] | float]:
    with Image.open(io.BytesIO(shown.data)) as image:
        assert image.mode in ("L", "RGB")
        return [image.getpixel((x, 0)) or 0 for x in range(image.width)]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        ("np.array([[0, 2000, 4000]], 'u2')", [0, 128, 255]),
        ("np.array([[0, 0.5, 1]], 'f4')", [0, 128, 255]),
        ("np.array([[-1.0, 0, np.nan]], 'f4')", [0, 255, 255]),
        ("np.array([[0, 100, 200]], 'i4')", [0, 100, 200]),
    ],
)
def test_deep_pictures_are_seen_as_a_person_would(
    cells: Cells, array: str, expected: list[int]
) -> None:
    execution = cells.run(f"import numpy as np\nfrom PIL import Image\nImage.fromarray({array})")
    assert pixels(execution.pictures[0]) == expected


def test_imshow_takes_bgr(cells: Cells) -> None:
    execution = cells.run(
        "import cv2, numpy as np\ncv2.imshow('w', np.array([[[255, 0, 0], [0, 0, 255]]], 'u1'))"
    )
    assert pixels(execution.pictures[0]) == [(0, 0, 255), (255, 0, 0)]


@pytest.mark.parametrize(
    "code",
    [
        "from PIL import Image\nImage.new('RGB', (2000, 1000))",
        "from PIL import Image\nImage.new('RGB', (2000, 1000)).save('large.png')",
        "import matplotlib.pyplot as plt\nplt.figure(figsize=(60, 30))\nplt.plot([0, 1])",
    ],
)
def test_large_pictures_are_shrunk_and_said(cells: Cells, code: str) -> None:
    execution = cells.run(code)
    (shown,) = execution.pictures
    assert 100_000 < shown.width * shown.height <= 250_000
    assert shown.width > 1.9 * shown.height
    assert "shrunk" in (execution.note or "")


def test_a_label_far_outside_does_not_explode_the_figure(cells: Cells) -> None:
    execution = cells.run(PLOT + "ax.text(5000, 0.5, 'far')\nplt.show()")
    (shown,) = execution.pictures
    assert (shown.width, shown.height) == (200, 100)


def test_many_pictures_are_capped_and_counted(cells: Cells) -> None:
    execution = cells.run(
        "from PIL import Image\nfor n in range(10): display(Image.new('L', (9, 5), n))"
    )
    shades = [pixels(shown)[0] for shown in execution.pictures]
    assert shades == [0, 1, 8, 9]
    assert execution.dropped.pictures == 6


def test_html_is_told_of_not_shown(cells: Cells) -> None:
    execution = cells.run(
        "from IPython.display import HTML\ndisplay(HTML('<p>' + 'x' * 5000))\nprint('shown')"
    )
    assert execution.text == "shown"
    assert execution.note == "HTML output omitted (5 kB)."


# --- text -----------------------------------------------------------------------------------------


def test_text_as_a_terminal_would_show_it(cells: Cells) -> None:
    execution = cells.run(
        r"""
        for n in range(101): print(f"\rfit {n}%", end="")
        print("\n\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 a\r\nb\x00\x07")
        """
    )
    assert execution.text == "fit 100%\nred link a\nb"


def test_bytes_and_surrogates_become_text(cells: Cells) -> None:
    execution = cells.run(
        r"""
        import os
        _ = os.write(1, bytes(range(256)))
        print("\ud83d")
        raise FileNotFoundError("\udcff.png")
        """
    )
    assert "\\ud83d" in execution.text
    assert "\x00" not in execution.text
    assert execution.text.encode("utf-8")
    assert error(execution).name == "FileNotFoundError"


def test_a_flood_keeps_head_and_tail_and_the_whole_in_a_file(cells: Cells) -> None:
    execution = cells.run(
        """
        print("HEAD")
        for n in range(20000): print(f"row {n:06d} " + "." * 60, flush=True)
        print("TAIL")
        """
    )
    assert execution.text.startswith("HEAD\nrow 000000")
    assert execution.text.endswith("TAIL")
    assert len(execution.text) < 4300
    assert execution.dropped.chars > 1_000_000
    path = execution.text.split("the whole text is in ")[1].split(" …]")[0]
    assert cells.text(f"print(len(open({path!r}).read().splitlines()))") == "20002"


def test_both_streams_flooded_by_a_child(cells: Cells) -> None:
    execution = cells.run(
        """
        import subprocess, sys
        program = "import os\\nfor _ in range(9000): os.write(1, b'o' * 90); os.write(2, b'e' * 90)"
        subprocess.run([sys.executable, "-c", program])
        print("END")
        """
    )
    assert execution.status == "ok"
    assert execution.text.endswith("END")
    assert execution.dropped.chars > 1_000_000


def test_a_long_value_and_a_long_message_are_cut(cells: Cells) -> None:
    assert len(cells.run("'x' * 1_000_000").text) < 5000
    assert len(error(cells.run("raise ValueError('x' * 1_000_000)")).message) < 3000


@pytest.mark.parametrize(
    "code",
    ["import sys; sys.stdout.close()", "import sys; sys.stdout = None", "print = 3; display = 4"],
)
def test_a_broken_stdout_lasts_one_cell(cells: Cells, code: str) -> None:
    cells.run(code)
    assert cells.text("import sys; _ = sys.stdout.write('here')\n%reset -f") == "here"


def test_an_updated_display_of_an_earlier_cell(cells: Cells) -> None:
    first = cells.run("handle = display('old', display_id=True)\nhandle.update('new')")
    assert first.text == "'new'"
    assert cells.run("handle.update('newer')").text == "'newer'"


# --- files ----------------------------------------------------------------------------------------


def test_new_and_changed_files_are_listed(cells: Cells) -> None:
    made = cells.run(
        """
        import os
        os.makedirs("made/deep", exist_ok=True)
        open("made/deep/a.txt", "w").write("12345")
        open(".hidden", "w").write("x")
        if not os.path.lexists("made/link"): os.symlink("/etc/passwd", "made/link.png")
        os.mkfifo("made/pipe.png")
        """
    )
    assert [(f.path, f.bytes) for f in made.files] == [("made/deep/a.txt", 5)]
    assert made.pictures == ()
    assert cells.run("pass").files == ()
    changed = cells.run("_ = open('made/deep/a.txt', 'a').write('6')")
    assert [(f.path, f.bytes) for f in changed.files] == [("made/deep/a.txt", 6)]


def test_inputs_are_there_and_cannot_be_changed(cells: Cells) -> None:
    path = f"{cells.box.data_dir}/image_1.png"
    sizes = cells.text(f"from PIL import Image\nprint(Image.open({path!r}).size)")
    assert sizes == "(60, 40)"
    if cells.wall.name == "process":
        assert cells.enforces("read_only_inputs").startswith("no: ")
        return
    for attempt in (
        f"open({path!r}, 'wb')",
        f"import os; os.remove({path!r})",
        f"import os; os.chmod({path!r}, 0o666)",
        f"open({cells.box.data_dir!r} + '/new', 'w')",
    ):
        assert error(cells.run(attempt)).name in ("OSError", "PermissionError")


# --- time -----------------------------------------------------------------------------------------


def test_a_timeout_keeps_what_was_printed_and_the_variables(cells: Cells) -> None:
    cells.run("before = 5")
    execution = cells.run("import time\nprint('started')\ntime.sleep(60)", 0.7)
    assert (execution.status, execution.cause, execution.kernel) == ("timeout", "deadline", "kept")
    assert stdout(execution) == "started\n"
    assert execution.seconds < 15
    assert cells.text("print(before)") == "5"


def test_endless_printing_trips_the_deadline(cells: Cells) -> None:
    execution = cells.run("while True: print('A' * 10000)", 1.0)
    assert (execution.status, execution.cause) == ("timeout", "deadline")
    assert execution.seconds < 15
    assert len(execution.text) < 12_000


def test_a_shell_command_that_hangs(cells: Cells) -> None:
    execution = cells.run("!sleep 60", 0.7)
    assert (execution.status, execution.kernel) == ("timeout", "kept")
    assert execution.seconds < 15


def test_a_swallowed_interrupt_costs_the_kernel(cells: Cells) -> None:
    execution = cells.run(
        """
        print("looping", flush=True)
        import time
        while True:
            try: time.sleep(0.1)
            except: pass
        """,
        0.7,
    )
    assert (execution.status, execution.cause) == ("timeout", "deadline")
    assert execution.kernel == "restarted"
    assert stdout(execution) == "looping\n"
    assert "variables and imports are lost" in (execution.note or "")
    assert cells.text("print('alive')") == "alive"


def test_a_hang_in_c_costs_the_kernel(cells: Cells) -> None:
    execution = cells.run(
        "import collections, itertools\ncollections.deque(itertools.repeat(None), maxlen=0)",
        0.7,
    )
    assert (execution.status, execution.kernel) == ("timeout", "restarted")
    assert execution.seconds < 15
    assert cells.text("print('alive')") == "alive"


# --- ends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["exit()", "quit()", "import sys; sys.exit()", "raise SystemExit"])
def test_exit_ends_the_cell_not_the_kernel(cells: Cells, code: str) -> None:
    cells.run("kept = 1")
    execution = cells.run(f"print('a')\n{code}\nprint('b')")
    assert (execution.status, execution.cause, execution.kernel) == ("error", None, "kept")
    assert error(execution).name == "SystemExit"
    assert stdout(execution) == "a\n"
    assert cells.text("print(kept)") == "1"


@pytest.mark.parametrize("code", ["exit", "quit"])
def test_exit_without_brackets(cells: Cells, code: str) -> None:
    cells.run("kept = 2")
    execution = cells.run(code)
    assert (execution.status, execution.kernel) == ("error", "kept")
    assert error(execution).name == "SystemExit"
    assert cells.text("print(kept)") == "2"


def test_the_reason_of_an_exit_is_kept(cells: Cells) -> None:
    execution = cells.run("import sys; sys.exit('no axis labels')")
    assert error(execution).message == "no axis labels"
    assert execution.text.count("\n") < 5


@pytest.mark.parametrize("code", ["input('box? ')", "breakpoint()", "import pdb; pdb.set_trace()"])
def test_nobody_can_type(cells: Cells, code: str) -> None:
    execution = cells.run(code)
    assert (execution.status, execution.kernel) == ("error", "kept")
    assert "nobody can type here" in error(execution).message
    assert "raw_input(self" not in error(execution).traceback
    assert cells.text("import sys; print(sys.gettrace())") == "None"


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("os._exit(3)", "exit:3"),
        ("os.kill(os.getpid(), 11)", "signal:11"),
        ("os.kill(os.getpid(), 9)", "signal:9"),
    ],
)
def test_death_is_named(cells: Cells, code: str, cause: str) -> None:
    execution = cells.run(f"import os\nprint('last words', flush=True)\n{code}")
    assert (execution.status, execution.cause, execution.kernel) == ("died", cause, "restarted")
    assert stdout(execution) == "last words\n"
    assert cells.run("last = 1; 'os' in dir()").text == "False"


def test_a_kernel_that_dies_between_cells_is_told_of(cells: Cells) -> None:
    cells.run(
        """
        import os, threading, time
        def later():
            time.sleep(0.2)
            os._exit(4)
        threading.Thread(target=later).start()
        """
    )
    cells.run("import time; time.sleep(3)")
    execution = cells.run("'os' in dir()")
    assert execution.text == "False"


def test_out_of_memory(cells: Cells) -> None:
    execution = cells.run(
        """
        print("filling", flush=True)
        blocks = []
        while True: blocks.append(bytearray(8 * 1024 * 1024))
        """
    )
    assert (execution.status, execution.cause) == ("died", "out_of_memory")
    assert execution.kernel == "restarted"
    assert stdout(execution) == "filling\n"
    assert "memory limit" in (execution.note or "")
    assert cells.text("print('alive')") == "alive"


def test_too_many_processes_are_refused(cells: Cells) -> None:
    # Bounded by itself, for walls whose limit is not the kernel's.
    execution = cells.run(
        """
        import os, time
        made = 0
        try:
            for _ in range(200):
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
                made += 1
        except OSError as refusal:
            print("refused", made < 64, type(refusal).__name__)
        """
    )
    if cells.enforces("pids") == "yes":
        assert stdout(execution) == "refused True BlockingIOError\n"
        assert "limit of 64 processes" in (execution.note or "")
    else:
        assert execution.cause in (None, "too_many_processes")
    assert cells.text("print('alive')") == "alive"


def test_a_fork_bomb_ends_with_its_cell(cells: Cells) -> None:
    if cells.enforces("pids") != "yes":
        pytest.skip(f"{cells.wall.name} does not bound forks by itself: {cells.enforces('pids')}")
    execution = cells.run(
        """
        import os
        while True:
            try: os.fork()
            except OSError: pass
        """,
        0.7,
    )
    assert (execution.status, execution.cause) == ("timeout", "deadline")
    assert execution.seconds < 25
    assert "limit of 64 processes" in (execution.note or "")
    assert cells.text("print('alive')") == "alive"


def test_killing_everything_in_sight(cells: Cells) -> None:
    if cells.wall.name == "process":
        assert cells.enforces("host_files").startswith("no: ")
        return
    execution = cells.run("import os\nprint('now', flush=True)\nos.kill(-1, 9)\nos._exit(9)")
    assert (execution.status, execution.kernel) == ("died", "restarted")
    assert stdout(execution) == "now\n"
    assert cells.run("os._exit(1)").kernel == "kept"
    assert cells.text("print('alive')") == "alive"


def test_displays_without_end_are_bounded(cells: Cells) -> None:
    execution = cells.run("for n in range(3000): display(n)\nprint('END')")
    assert execution.status == "ok"
    assert execution.text.endswith("END")
    assert len(execution.outputs) <= 2001


def test_a_full_disk_is_an_error_of_the_cell(cells: Cells) -> None:
    execution = cells.run(
        """
        print("writing", flush=True)
        with open("fill.bin", "wb") as file:
            while True: file.write(bytes(1024 * 1024))
        """
    )
    assert (execution.status, execution.kernel) == ("error", "kept")
    number = 27 if cells.enforces("disk") != "yes" else 28  # EFBIG, ENOSPC
    assert f"[Errno {number}]" in error(execution).message
    assert cells.text("import os; os.remove('fill.bin'); print('alive')") == "alive"


# --- what outlives a cell -------------------------------------------------------------------------


def test_children_do_not_outlive_their_cell(cells: Cells) -> None:
    execution = cells.run(
        """
        import subprocess, sys
        program = "import time\\nwhile True: print('late', flush=True); time.sleep(0.01)"
        child = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
        """
    )
    assert execution.status == "ok"
    assert "1 process" in (execution.note or "")
    after = cells.run("import time; time.sleep(0.3); print(child.wait())")
    assert after.text == "-9"


def test_threads_and_tasks_are_mute_after_their_cell(cells: Cells) -> None:
    cells.run(
        """
        import asyncio, threading, time
        from PIL import Image
        def late():
            for n in range(40):
                print("late thread"); display(Image.new("L", (3, 3), n)); time.sleep(0.02)
        thread = threading.Thread(target=late); thread.start()
        async def later():
            for _ in range(40):
                print("late task"); await asyncio.sleep(0.02)
        task = asyncio.create_task(later())
        """
    )
    execution = cells.run(
        """
        await asyncio.sleep(0.3)
        print("mine")
        own = threading.Thread(target=lambda: print("my thread")); own.start(); own.join()
        """
    )
    assert execution.text == "mine\nmy thread"
    assert execution.pictures == ()
    cells.run("thread.join()")


def test_a_forked_child_does_not_act_as_the_kernel(cells: Cells) -> None:
    execution = cells.run(
        """
        import os
        pid = os.fork()
        print("child" if pid == 0 else "parent", flush=True)
        if pid: os.waitpid(pid, 0)
        """
    )
    assert sorted(stdout(execution).split()) == ["child", "parent"]
    assert cells.text("print(os.getpid() == 0, pid > 0)") == "False True"


# --- isolation ------------------------------------------------------------------------------------


def test_no_secret_enters(cells: Cells) -> None:
    assert cells.text("import os; print('OPENAI_API_KEY' in os.environ)") == "False"
    found = cells.text(
        f"""
        import glob
        hits = 0
        for path in glob.glob("/proc/[0-9]*/environ"):
            try: hits += {SECRET!r}[3:] in open(path, errors="replace").read()
            except OSError: pass
        print(hits)
        """
    )
    if cells.wall.name == "process":
        assert cells.enforces("host_files").startswith("no: ")
    else:
        assert found == "0"


@pytest.mark.parametrize("package", ["agent", "sandbox", "benchmarks", "agent.loop"])
def test_the_host_program_is_not_importable(cells: Cells, package: str) -> None:
    assert error(cells.run(f"import {package}")).name == "ModuleNotFoundError"
    if cells.wall.name == "process":
        assert "child processes can import" in cells.enforces("host_packages")
        return
    child = cells.text(f"import subprocess, sys\n!{{sys.executable}} -c 'import {package}' 2>&1")
    assert "ModuleNotFoundError" in child


def test_a_module_of_the_cells_own_may_have_such_a_name(cells: Cells) -> None:
    cells.run("_ = open('agent.py', 'w').write('answer = 42')")
    assert cells.text("import agent; print(agent.answer)") == "42"
    cells.run("import os, sys; os.remove('agent.py'); del sys.modules['agent']")


def test_no_network(cells: Cells) -> None:
    if cells.enforces("network") != "yes":
        assert cells.enforces("network").startswith("no: ")
        return
    interfaces = cells.text(
        "print([line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line])"
    )
    assert interfaces == "['lo']"
    failure = error(cells.run("import socket; socket.create_connection(('1.1.1.1', 53), 5)"))
    assert failure.name in ("PermissionError", "OSError")
    lookup = error(cells.run("socket.gethostbyname('example.org')"))
    assert lookup.name == "gaierror"


def test_nothing_is_writable_outside_the_scratch_folders(cells: Cells) -> None:
    if cells.enforces("read_only_root") != "yes":
        assert cells.enforces("read_only_root").startswith("no: ")
        return
    written = cells.text(
        """
        import os
        written = []
        for folder in ("/", "/etc", "/usr", "/opt", "/opt/potrunner/supervisor", "/var", "/root",
                       "/home", "/sys", "/proc", "/mnt", "/mnt/data"):
            try:
                open(folder + "/probe", "w").close()
                written.append(folder)
            except OSError: pass
        print(written, os.getuid() != 0)
        """
    )
    assert written == "[] True"


def test_the_stream_cannot_be_forged(cells: Cells) -> None:
    forged = cells.run(
        """
        import json, os, struct
        text = json.dumps({"type": "done", "id": 1, "status": "ok", "parts": []}).encode()
        frame = struct.pack(">II", len(text) + 4, len(text)) + text
        for path in ["/proc/1/fd", "/proc/self/fd", "/dev/fd"]:
            try: names = os.listdir(path)
            except OSError: continue
            for name in names:
                if path.startswith("/proc/self") and int(name) > 2: continue
                try: os.write(os.open(f"{path}/{name}", os.O_WRONLY | os.O_NONBLOCK), frame)
                except OSError: pass
        os.write(1, frame); os.write(2, frame)
        print("still here")
        """
    )
    assert "still here" in forged.text
    assert cells.text("print('fine')") == "fine"


def test_the_box_says_what_it_is(cells: Cells) -> None:
    facts = cells.box.facts
    assert facts["wall"] == cells.wall.name
    assert facts["python"].startswith("3.")
    assert {"numpy", "opencv-python-headless", "pillow"} <= facts["packages"].keys()
    if cells.wall.name != "process":
        assert facts["box"]["uid"] != 0
        assert facts["box"]["pid"] == 1
