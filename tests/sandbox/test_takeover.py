"""A cell that takes hold of its own kernel: its errors, threads, interpreter, sockets and memory.
What it gets is named, and the next cell works."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from sandbox.outputs import Error
from sandbox.spec import Limits
from tests.conftest import available_wall
from tests.sandbox.boxes import Cells, error, opened, stdout

LIMITS = Limits(
    memory_mb=768, pids=64, work_mb=48, tmp_mb=48, shm_mb=16, cell_seconds=20, grace_seconds=2.0
)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
        "process",
    ],
)
def cells(request: pytest.FixtureRequest) -> Generator[Cells]:
    with opened(available_wall(request.param), limits=LIMITS) as box:
        yield box


@pytest.fixture(autouse=True)
def still_works(cells: Cells) -> Generator[None]:
    yield
    assert cells.text("print('still here')") == "still here"


# --- errors: exactly one, under its own name ------------------------------------------------------

SHELL = "ip = get_ipython()\n"
ERRORS = {
    "text that raises": (
        "class E(Exception):\n    def __str__(self): raise self\nraise E",
        "E",
        "cannot be made: E",
    ),
    "text that ends everything": (
        "class E(BaseException):\n    def __str__(self): raise SystemExit\nraise E",
        "E",
        "cannot be made: SystemExit",
    ),
    "repr that raises": (
        "class E(Exception):\n    def __repr__(self): raise KeyError\n"
        "    def __bool__(self): raise KeyError\nraise E('said')",
        "E",
        "said",
    ),
    "text of a class of its own": (
        "class S(str):\n    def encode(self, *_): raise KeyError\n"
        "    def __str__(self): return self\n"
        "class E(Exception):\n    def __str__(self): return S('own')\nraise E",
        "E",
        "own",
    ),
    "no text": (
        "class E(Exception):\n    def __str__(self): return None\nraise E",
        "E",
        "TypeError",
    ),
    "metaclass": (
        "class M(type):\n    @property\n    def __name__(self): raise KeyError\n"
        "class E(Exception, metaclass=M): pass\nraise E('x')",
        "E",
        "x",
    ),
    "odd class name": ("raise type('a b\\x1b[31m', (Exception,), {})('x')", "a b", "x"),
    "syntax error of its own": (
        "class E(SyntaxError):\n    filename = property(lambda s: 1 / 0)\nraise E('z')",
        "E",
        "z",
    ),
    "chain of raising texts": (
        "class E(Exception):\n    def __str__(self): raise self\n"
        "try: raise E\nexcept E: raise ValueError('v')",
        "ValueError",
        "v",
    ),
    "closed streams": (
        "import sys\nsys.stdout.close(); sys.stderr.close()\n1/0",
        "ZeroDivisionError",
        "division by zero",
    ),
    "_showtraceback": (SHELL + "ip._showtraceback = None\n1/0", "ZeroDivisionError", "division"),
    "showtraceback": (SHELL + "ip.showtraceback = print\n1/0", "ZeroDivisionError", "division"),
    "of the class": (
        SHELL + "type(ip).showtraceback, kept = print, type(ip).showtraceback\n1/0",
        "ZeroDivisionError",
        "division",
    ),
    "back in the class": (SHELL + "type(ip).showtraceback = kept\n1/0", "ZeroDivisionError", "div"),
    "renderer": (SHELL + "ip.InteractiveTB = None\n1/0", "ZeroDivisionError", "division"),
    "display hook": (SHELL + "ip.displayhook.pub_socket = None\n1/0", "ZeroDivisionError", "div"),
    "custom handler": (
        SHELL + "ip.set_custom_exc((ZeroDivisionError,), lambda *_, **__: print('custom'))\n1/0",
        "ZeroDivisionError",
        "division",
    ),
    "excepthook": ("import sys\nsys.excepthook = None\n1/0", "ZeroDivisionError", "division"),
    "syntax": (SHELL + "ip.run_cell_async = ip.transform_cell = None", None, ""),
    "magic": ("%nosuch", "UsageError", "not found"),
    "low recursion limit": (
        "import sys\nsys.setrecursionlimit(70)\ndef f(): f()\nf()",
        "RecursionError",
        "recursion",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_one_error_under_its_own_name(cells: Cells, case: str) -> None:
    code, name, words = ERRORS[case]
    execution = cells.run(code)
    assert execution.kernel == "kept"
    if name is None:
        assert execution.status == "ok"
        return
    shown = error(execution)
    assert (execution.status, shown.name) == ("error", name)
    assert words in shown.message
    assert shown.traceback
    after = error(cells.run("{}['next']"))
    assert (after.name, after.message) == ("KeyError", "'next'")


def test_a_name_that_another_error_wears(cells: Cells) -> None:
    execution = cells.run(
        "class Fake: __name__ = 'Fake'\n"
        "get_ipython()._showtraceback(type('Fake', (), {}), 'x', ['y'])\nraise IndexError(3)"
    )
    names = [o.name for o in execution.outputs if isinstance(o, Error)]
    assert names == ["Fake", "IndexError"]


def test_a_long_chain_costs_little(cells: Cells) -> None:
    execution = cells.run(
        """
        found = None
        for n in range(20000):
            link = ValueError(n); link.__context__ = found; found = link
        raise found
        """
    )
    assert error(execution).message == "19999"
    assert execution.cpu_seconds < 2  # it was five
    length = cells.text("n, e = 0, found\nwhile e: n, e = n + 1, e.__context__\nprint(n)")
    assert length == "20000"  # and the cell's own exceptions are as it made them


# --- threads and timers of an earlier cell --------------------------------------------------------


def test_threads_of_an_earlier_cell_are_mute_however_they_write(cells: Cells) -> None:
    cells.run(
        """
        import _thread, faulthandler, os, signal, sys, threading, time
        ways = [
            lambda: print("LATE", flush=True),
            lambda: os.write(1, b"LATE\\n"),
            lambda: os.writev(2, [b"LATE\\n"]),
            lambda: (sys.stdout.buffer.write(b"LATE\\n"), sys.stdout.buffer.flush()),
            lambda: sys.__stderr__.write("LATE\\n"),
            lambda: display("LATE"),
        ]
        def keep_on():
            until = time.monotonic() + 1.2
            while time.monotonic() < until:
                for way in ways: way()
                time.sleep(0.05)
        threading.Thread(target=keep_on).start()
        _thread.start_new_thread(keep_on, ())
        def breed():
            time.sleep(0.4)
            threading.Thread(target=keep_on).start()
        threading.Thread(target=breed).start()
        faulthandler.dump_traceback_later(0.6)
        _ = signal.signal(signal.SIGALRM, lambda *_: print("LATE"))
        _ = signal.setitimer(signal.ITIMER_REAL, 0.6)
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(1)
        pool.submit(print, "in time").result()
        """
    )
    execution = cells.run(
        """
        import asyncio
        time.sleep(1.0)
        pool.submit(print, "from the pool").result()
        await asyncio.to_thread(print, "to a thread")
        own = threading.Thread(target=os.write, args=(1, b"own\\n")); own.start(); own.join()
        """
    )
    assert execution.text == "from the pool\nto a thread\nown"
    assert cells.run("import time; time.sleep(0.8)").outputs == ()


def test_a_thread_of_an_earlier_cell_that_speaks_as_the_next_request_arrives(cells: Cells) -> None:
    """The request is the kernel's newest by then, but its cell has not begun."""
    cells.run(
        """
        import threading
        kernel, go, said = get_ipython().kernel, threading.Event(), threading.Event()
        def speak():
            go.wait(20)
            display("LATE"); print("LATE", flush=True)
            said.set()
        threading.Thread(target=speak).start()
        def set_parent(*args, **kwargs):
            del kernel.set_parent
            kernel.set_parent(*args, **kwargs)
            go.set(); said.wait(10)
        kernel.set_parent = set_parent
        """
    )
    assert cells.text("print(said.is_set())") == "True"


def test_settings_of_the_interpreter_last_one_cell(cells: Cells) -> None:
    cells.run(
        """
        import resource, signal, sys, threading
        sys.settrace(lambda *_: None); sys.setprofile(lambda *_: None)
        threading.settrace(lambda *_: None); sys.setswitchinterval(100)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (5, hard))
        """
    )
    seen = cells.text(
        "print(sys.gettrace(), sys.getprofile(), sys.getswitchinterval(),"
        " signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()),"
        " resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64)"
    )
    assert seen == "None None 0.005 False True"


# --- the kernel's own parts -----------------------------------------------------------------------

DEATHS = {
    "null pointer": ("import ctypes; ctypes.string_at(0)", "signal:11"),
    "None freed": (
        "import ctypes\nctypes.c_long.from_address(id(None)).value = 0\nx = [None]; del x",
        "signal:6",
    ),
    "C recursion": (
        "import sys; sys.setrecursionlimit(10 ** 7)\n"
        "def f(n): return sorted([1, 2], key=lambda _: f(n + 1))\nf(0)",
        "signal:11",
    ),
    "abort": ("import os; os.abort()", "signal:6"),
    "replaced": ("import os; os.execvp('true', ['true'])", "exit:0"),
    "CPU limit": (
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
        None,
    ),
}


@pytest.mark.parametrize("case", DEATHS)
def test_broken_from_inside(cells: Cells, case: str) -> None:
    code, cause = DEATHS[case]
    execution = cells.run(code)
    assert (execution.status, execution.kernel) == ("died", "restarted")
    assert str(execution.cause).startswith("signal:") if cause is None else execution.cause == cause


HARMLESS = {
    "signals ignored": "import signal\nfor n in {*signal.valid_signals()} - {9, 19, 32, 33}:"
    " signal.signal(n, signal.SIG_IGN)",
    "session": "import os\ntry: os.setsid()\nexcept PermissionError: pass",
    "garbage": "import gc; gc.set_threshold(1); gc.disable(); gc.freeze()",
    "names": "del get_ipython; In = Out = _ = __builtins__ = None",
    "tasks cancelled": "import asyncio\nfor t in asyncio.all_tasks(): _ = t.cancel()",
    "name of the process": "import ctypes\n_ = ctypes.CDLL(None).prctl(15, b') R 1 (x', 0, 0, 0)",
    "not dumpable": "import ctypes; _ = ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)",
    "sub-reaper": "import ctypes; _ = ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)",
    "traced": "import ctypes; _ = ctypes.CDLL(None).ptrace(0, 0, 0, 0)",
    "no parent's death": "import ctypes; _ = ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)",
    "hooks": SHELL + "ip.events.register('post_run_cell', lambda *_: 1 / 0)",
    "paths": "import sys; kept = sys.path[:]; sys.path.clear(); sys.path[:] = kept",
}


@pytest.mark.parametrize("case", HARMLESS)
def test_harmless(cells: Cells, case: str) -> None:
    cells.run("kept = 5")
    execution = cells.run(HARMLESS[case])
    assert (execution.status, execution.kernel) == ("ok", "kept"), execution
    cells.run("if 'ip' in dir(): ip.events.callbacks['post_run_cell'].clear()")


CUT_OFF = {
    "descriptors closed": "import os; os.closerange(3, 1000)",
    "side channel shut": "import os, socket\nfor fd in range(3, 64):\n    try:\n"
    "        s = socket.socket(fileno=os.dup(fd))\n"
    "        if s.type == socket.SOCK_SEQPACKET: s.shutdown(2)\n        s.detach()\n"
    "    except OSError: pass",
    "loop stopped": "import asyncio; asyncio.get_running_loop().stop()",
    "descriptors forbidden": "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (5, 5))",
    "other key": "get_ipython().kernel.session.key = b'other'",
    "sockets closed": "import gc, zmq\n"
    "for s in [s for s in gc.get_objects() if isinstance(s, zmq.Socket)]: s.close(0)",
    "modules gone": "import sys; sys.modules.clear()",
    "builtins gone": "import builtins\nfor n in 'print', 'len', 'isinstance', '__import__':"
    " setattr(builtins, n, None)",
}


@pytest.mark.parametrize("case", CUT_OFF)
def test_cut_off(cells: Cells, case: str) -> None:
    """It may end as it likes; what comes next runs in a kernel that works, and is told of it."""
    execution = cells.run(CUT_OFF[case], 3)
    following = cells.run("print('next', 6 * 7)")
    assert (following.status, stdout(following)) == ("ok", "next 42\n"), (execution, following)
    assert "restarted" in (execution.kernel, following.kernel) or execution.status == "ok"


def test_words_of_the_side_channel_spoken_by_the_cell(cells: Cells) -> None:
    execution = cells.run(
        """
        import os, socket
        said = 0
        for fd in range(3, 64):
            try: s = socket.socket(fileno=os.dup(fd))
            except OSError: continue
            if s.type == socket.SOCK_SEQPACKET:
                for word in (b"p1", b"p999999", b"r", b"b", b"s", b"s" + bytes(4) + b"m" * 400,
                             b"C", b"k", os.urandom(99)):
                    said += bool(s.send(word))
            s.detach()
        print(said > 0)
        """
    )
    assert (execution.status, stdout(execution)) == ("ok", "True\n")


def test_an_end_that_the_cell_forged(cells: Cells) -> None:
    execution = cells.run(
        """
        import time
        k = get_ipython().kernel
        k.session.send(k.iopub_socket, "status", {"execution_state": "idle"}, k.get_parent("shell"))
        time.sleep(1.5)
        print("TOO LATE")
        """
    )
    assert (execution.status, execution.kernel) == ("error", "kept")
    assert stdout(cells.run("print('mine')")) == "mine\n"


def test_sockets_of_the_kernel_bound_by_the_cell(cells: Cells) -> None:
    if cells.wall.name == "process":
        pytest.skip("it would write to the host's temporary folder")
    cells.run(
        """
        import glob, os, stat, zmq
        places = [p for p in glob.glob("/tmp/.k*/*") if stat.S_ISSOCK(os.stat(p).st_mode)]
        for place in places:
            junk = zmq.Context.instance().socket(zmq.DEALER); junk.linger = 0
            junk.connect("ipc://" + place)
            junk.send_multipart([b"x", b"<IDS|MSG>", b"", b"{}", b"{}", b"{}", b"{}"])
            os.unlink(place)
            fake = zmq.Context.instance().socket(zmq.ROUTER); fake.linger = 0
            fake.bind("ipc://" + place)
        print(len(places))
        os._exit(1)
        """
    )


# --- floods of messages ---------------------------------------------------------------------------

FLOODS = {
    "displays": ("for n in range(2500): display(n)", "2499"),
    "updates": ("h = display(0, display_id=True)\nfor n in range(2500): h.update(n)", "2499"),
    "clearing": (
        "from IPython.display import clear_output\nfor n in range(2500): clear_output(); print(n)",
        "2499",
    ),
    "comms": (
        "from comm import create_comm\nc = create_comm('x')\n"
        "for n in range(2500): c.send({'n': n})\nprint(n)",
        "2499",
    ),
    "streams": (
        "k = get_ipython().kernel\nfor n in range(5000): k.session.send(k.iopub_socket, 'stream',"
        " {'name': 'stdout', 'text': f'{n}\\n'}, k.get_parent('shell'))",
        "4999",
    ),
    "escapes": ("print('\\x1b[' * 200_000, 'a\\b' * 100_000, '\\x1b]' + 'a' * 200_000, 'x')", ""),
}


@pytest.mark.parametrize("case", FLOODS)
def test_floods_are_bounded(cells: Cells, case: str) -> None:
    code, last = FLOODS[case]
    execution = cells.run(code, 60)
    assert (execution.status, execution.kernel) == ("ok", "kept"), execution
    assert execution.text.endswith(last)
    assert len(execution.text) < 2 * LIMITS.output_chars + 5000


def test_memory_after_the_first_thread_has_ended(cells: Cells) -> None:
    execution = cells.run(
        """
        import ctypes, os, threading, time
        if os.fork() == 0:
            def hold():
                block = bytearray(150 << 20)
                time.sleep(2)
                os._exit(0)
            threading.Thread(target=hold).start()
            ctypes.CDLL(None).syscall(60, 0)  # exit of this thread alone
        time.sleep(1.2)
        """
    )
    assert execution.peak_mb > 150
