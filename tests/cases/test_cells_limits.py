"""Cells that go on for ever, print without end, start processes, take memory or disk (K08-K19,
K46-K49): each input as it was met in the field, and others of its kind."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import pytest

from sandbox.spec import WallName
from tests.cases.cells import LIMITS, WALLS, Case, check
from tests.conftest import available_wall
from tests.sandbox.boxes import Cells, opened

SOON = 1.0
LOST = "all variables and imports are lost"


@pytest.fixture(scope="module", params=WALLS)
def cells(request: pytest.FixtureRequest) -> Generator[Cells]:
    with opened(available_wall(request.param), limits=LIMITS) as box:
        yield box


def late(code: str, text: tuple[str, ...] = ()) -> Case:
    """Stopped at the deadline; the kernel lives."""
    return Case(
        code,
        "timeout",
        "deadline",
        text=text,
        before=("import time; kept = 41",),
        deadline=SOON,
        after="print(kept + 1, 'next cell')",
        shows="42 next cell",
    )


def too_late(code: str, text: tuple[str, ...] = ()) -> Case:
    """It does not listen: the kernel is replaced, within seconds of the limit."""
    return Case(
        code, "timeout", "deadline", "restarted", text=(LOST, *text), deadline=SOON, within=20
    )


def died(code: str, cause: str, text: tuple[str, ...] = ()) -> Case:
    return Case(code, "died", cause, "restarted", text=(LOST, *text), within=30)


TIME = {
    "K08": too_late(
        "import time\nn = 0\nwhile True:\n    try:\n        time.sleep(0.2)\n        n += 1\n"
        "    except:\n        pass"
    ),
    "K08 handler": too_late(
        "import signal, time\nsignal.signal(signal.SIGINT, lambda *a: print('no', flush=True))\n"
        "time.sleep(30)",
        ("no",),
    ),
    "K08 ignored": too_late(
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(30)"
    ),
    "K08 blocked": late(
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 30))\n"
        "time.sleep(30)"
    ),
    "K08 finally": too_late("import time\ntry: time.sleep(30)\nfinally:\n    while True: pass", ()),
    "K08 stopped": too_late("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    "K08 replaced program": too_late("import os\nos.execvp('sleep', ['sleep', '30'])"),
    "K08 listens": late("print('started', flush=True)\ntime.sleep(30)", ("started",)),
    "K08 catches and ends": late(
        "try: time.sleep(30)\nexcept KeyboardInterrupt: print('cleaning up')", ("cleaning up",)
    ),
    "K08 pure Python": late("while True: pass"),
    "K08 awaited": late("import asyncio\nawait asyncio.sleep(30)"),
    "K08 lock": late("import threading\nthreading.Event().wait()"),
    "K08 thread": late(
        "import threading\nt = threading.Thread(target=time.sleep, args=(2,)); t.start(); t.join()"
    ),
    "K08 drawing": Case(
        "plt.plot([1, 2])\ntime.sleep(30)",
        "timeout",
        "deadline",
        before=("import time, matplotlib.pyplot as plt",),
        deadline=2,
    ),
    "K09": too_late(
        "import collections, itertools\ncollections.deque(itertools.repeat(None), maxlen=0)"
    ),
    "K09 sum": too_late("sum(range(10 ** 14))"),
    "K09 iterator": too_late("import itertools\nmax(itertools.repeat(1))"),
    "K09 number": late("10 ** 10 ** 9"),
    "K09 pattern": late("import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')"),
    "K09 C call": late("import ctypes\nctypes.PyDLL(None).usleep(30_000_000)"),
    "K17": Case(
        '!sleep 1000\nprint("after")',
        "timeout",
        "deadline",
        deadline=SOON,
        after="import subprocess\nprint(subprocess.run(['sh', '-c', 'cat /proc/[0-9]*/comm'],"
        " capture_output=True, text=True).stdout.count('sleep'), 'next cell')",
        shows="0 next cell",
    ),
    "K17 by subprocess": late("import subprocess\nsubprocess.run(['sleep', '1000'])"),
    "K17 in a session of its own": late("!setsid -w sleep 1000"),
    "K17 deaf": Case("!trap '' INT; sleep 1000; sleep 1000", "timeout", "deadline", deadline=SOON),
    "K17 pipe": late("out = !sleep 1000"),
    "K17 script": Case("%%bash\nsleep 1000", "timeout", "deadline", deadline=SOON),
}
PROCESSES = {
    "K14": Case(
        "import multiprocessing as mp\ndef sq(v):\n    print('sq', v)\n    return v * v\n"
        "ctx = mp.get_context('spawn')\nwith ctx.Pool(2) as p:\n    print(p.map(sq, range(4)))",
        "timeout",
        "deadline",
        None,
        text=("attribute 'sq'",),
        deadline=6,
        within=25,
        after="import os; print(len([n for n in os.listdir('/proc') if n.isdigit()]) < 7,"
        " 'next cell')",
        shows="True next cell",
    ),
    "K14 forked": Case(
        "import multiprocessing as mp\n"
        "def sq(v):\n    print('sq', v, flush=True)\n    return v * v\n"
        "with mp.get_context('fork').Pool(2) as p: print(p.map(sq, range(4)))",
        text=("sq 0", "sq 3", "[0, 1, 4, 9]"),
    ),
    "K14 executor": Case(
        "from concurrent.futures import ProcessPoolExecutor as P\n"
        "with P(2) as p: print(list(p.map(abs, [-1, -2])))",
        text=("[1, 2]",),
    ),
    "K14 joblib": Case(
        "from joblib import Parallel, delayed as d\nprint(Parallel(2)(d(abs)(-n) for n in (1, 2)))",
        text=("[1, 2]",),
    ),
    "K14 child that fails": Case(
        "import multiprocessing as mp\np = mp.get_context('fork').Process(target=lambda: 1 / 0)\n"
        "p.start(); p.join(); print(p.exitcode)",
        text=("ZeroDivisionError", "1"),
    ),
    "K14 child that exits": Case(
        "import os\npid = os.fork()\nif not pid: raise SystemExit(5)\nprint(os.waitpid(pid, 0)[1])",
        text=("256",),
    ),
    "K15": Case(
        'import subprocess, sys\np = subprocess.Popen([sys.executable, "-c", "while True: pass"])\n'
        'print("started", p.pid)',
        text=("started", "process(es) that it had left running"),
        after="print(p.poll(), 'next cell')",
        shows="-9 next cell",
    ),
    "K15 daemon": Case(
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        for n in range(3): os.close(n)\n        time.sleep(300)\n    os._exit(0)\n"
        "os.wait(); time.sleep(0.3)",
        text=("process(es)",),
    ),
    "K15 nohup": Case("!(nohup sleep 300 > /dev/null 2>&1 &); echo on", text=("on", "process(es)")),
    "K15 system": Case("import os; os.system('setsid sleep 300 &');", text=("process(es)",)),
    "K15 pool": Case(
        "from concurrent.futures import ProcessPoolExecutor as P\n"
        "pool = P(1); pool.submit(abs, -1).result()",
        text=("process(es)",),
    ),
    "K15 stopped": Case(
        "import os, subprocess\np = subprocess.Popen(['sleep', '300']); os.kill(p.pid, 19)",
        text=("process(es)",),
    ),
    "K15 prints later": Case(
        "import subprocess\np = subprocess.Popen('sleep 0.3; echo LATE', shell=True)",
        after="import time; time.sleep(0.6); print('next cell')",
        shows="next cell",
        hidden=("LATE",),
    ),
    "K16": Case(
        '!sleep 300 &\nprint("next")',
        "error",
        error="OSError",
        message="Background processes not supported",
        after="import os; print(os.path.exists('/proc/self'), 'next cell')",
    ),
    "K16 script": Case("%%bash --bg\nsleep 300", text=("process(es)",)),
    "K49": Case(
        "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
        "timeout",
        "deadline",
        "restarted",
        text=("limit of 64 processes", LOST),
        deadline=SOON,
        within=30,
    ),
    "K49 threads": Case(
        "import threading, time\nfor _ in range(300):\n"
        "    threading.Thread(target=time.sleep, args=(1,), daemon=True).start()",
        "error",
        error="RuntimeError",
        message="can't start new thread",
        text=("limit of 64 processes",),
        after="import time; time.sleep(1.2); print('next cell')",
    ),
    "K49 children": Case(
        "import subprocess\nfor _ in range(300): subprocess.Popen(['sleep', '300'])",
        "error",
        error="BlockingIOError",
        text=("limit of 64 processes", "that it had left running"),
    ),
    "K49 shell": Case(
        "import os\nos.system('b() { b | b & }; b; sleep 0.5');", text=("limit of 64 processes",)
    ),
    "K49 nested": Case(
        "import subprocess, sys\np = 'import os, sys; [os.fork() for _ in range(20)]'\n"
        "subprocess.run([sys.executable, '-c', p]);",
        text=("limit of 64 processes",),
    ),
}
OUTPUT = {
    "K11": Case(
        'import subprocess, sys\nprog = "import sys\\nfor i in range(20000):\\n'
        "    sys.stdout.write('o'*90+chr(10)); sys.stderr.write('e'*90+chr(10))\"\n"
        'subprocess.run([sys.executable, "-c", prog])\nprint("END")',
        text=("END", "characters omitted"),
    ),
    "K11 thread and child": Case(
        "import subprocess, threading\n"
        "t = threading.Thread(target=lambda: print('t' * 200_000)); t.start()\n"
        "subprocess.run('yes | head -c 300000', shell=True); t.join(); print('END')",
        text=("END",),
    ),
    "K11 captured": Case(
        "import subprocess\n"
        "r = subprocess.run('yes | head -c 9000000', shell=True, capture_output=True)\n"
        "print(len(r.stdout))",
        text=("9000000",),
    ),
    "K18": Case(
        "import sys\nfor i in range(60000):\n"
        '    sys.stdout.write(f"row {i:06d} " + "." * 60 + "\\n")\n'
        '    sys.stdout.flush()\nprint("SUM=1799970000")',
        text=("row 000000", "SUM=1799970000", "characters omitted"),
    ),
    "K18 both streams": Case(
        "import sys\nfor i in range(5000): print(i); print(-i, file=sys.stderr)\nprint('SUM')",
        text=("SUM", "omitted"),
    ),
    "K18 logging": Case(
        "import logging\nlogging.basicConfig(force=True)\n"
        "for i in range(20000): logging.warning('w' * 50)\nprint('SUM')",
        text=("SUM", "omitted"),
    ),
    "K18 one line": Case("print('x' * 20_000_000 + 'END')", text=("END", "omitted")),
    "K18 value": Case("list(range(10 ** 6))", text=("omitted",)),
    "K18 displays": Case("for i in range(2500): display(i)\nprint('SUM')", text=("2499", "SUM")),
    "K19": late('while True:\n    print("A" * 100000)', ("omitted", "AAAA")),
    "K19 child": Case("!yes", "timeout", "deadline", text=("y\ny", "omitted"), deadline=SOON),
    "K19 displays": late("while True: display('d')", ("'d'",)),
    "K19 redrawn": late(r"while True: print('\rx', end='')"),
    "K19 pictures": late(
        "from PIL import Image\nn = 0\nwhile True: display(Image.new('L', (9, 9), n % 256)); n += 1"
    ),
    "K19 clearing": late(
        "from IPython.display import clear_output\nwhile True: clear_output(wait=True); print('c')"
    ),
    "K19 updates": late("h = display(0, display_id=True)\nwhile True: h.update(1)", ("1",)),
}
MEMORY = {
    "K46": died(
        "blocks = []\nwhile True:\n    blocks.append(bytearray(64 * 1024 * 1024))",
        "out_of_memory",
        ("memory limit of 768 MiB was reached",),
    ),
    "K46 array": died(
        "import numpy as np\nprint('filling', flush=True)\nnp.ones((2 ** 18, 2 ** 12))",
        "out_of_memory",
        ("filling",),
    ),
    "K46 list": died("x = [0]\nwhile True: x += x", "out_of_memory"),
    "K46 not to be killed first": died(
        "open('/proc/self/oom_score_adj', 'w').write('0')\nblocks = []\n"
        "while True: blocks.append(bytearray(1 << 24))",
        "out_of_memory",
    ),
    "K46 swallowed": died(
        "blocks = []\nwhile True:\n    try: blocks.append(bytearray(1 << 24))\n    except: pass",
        "out_of_memory",
    ),
    "K46 refused": Case("bytearray(1 << 60)", "error", error="MemoryError"),
    "K46 child": Case(
        "import subprocess, sys\nprog = 'b = []\\nwhile True: b.append(bytearray(1 << 24))'\n"
        "print(subprocess.run([sys.executable, '-c', prog]).returncode)",
        text=("-9", "memory limit of 768 MiB was reached; a process was killed"),
    ),
    "K46 many children": Case(
        "import os, time\nopen('/proc/self/oom_score_adj', 'w').write('0')\nfor _ in range(50):\n"
        "    if os.fork() == 0:\n        b = bytearray(20 << 20); time.sleep(9); os._exit(0)\n"
        "time.sleep(4)",
        text=("memory limit of 768 MiB was reached",),
    ),
    "K47": Case(
        "from multiprocessing import shared_memory\n"
        "s = shared_memory.SharedMemory(create=True, size=48 * 1024 * 1024)\n"
        's.buf[:] = b"\\1" * len(s.buf)\nprint("filled")\ns.close(); s.unlink()',
        text=("filled",),
    ),
    "K47 exceeded": died(
        "from multiprocessing import shared_memory\n"
        "s = shared_memory.SharedMemory(create=True, size=80 * 1024 * 1024)\n"
        's.buf[:] = b"\\1" * len(s.buf)',
        "signal:7",
    ),
    "K47 by file": Case(
        "open('/dev/shm/f', 'wb').write(bytes(70 << 20))", "error", error="OSError"
    ),
    "K48": Case(
        'with open("fill.bin", "wb") as f:\n    while True:\n'
        '        f.write(b"\\0" * (1024 * 1024))',
        "error",
        error="OSError",
        message="[Errno 28] No space left on device",
        text=("No space left",),
        after="import os; os.remove('fill.bin'); open('new', 'w').write('x'); print('next cell')",
    ),
    "K48 many files": Case(
        "for i in range(10 ** 6):\n    with open(f'f{i}', 'wb') as f: f.write(bytes(100_000))",
        "error",
        error="OSError",
        message="No space left",
        after="!rm -f f*; echo next cell",
    ),
    "K48 temporary": Case(
        "open('/tmp/t', 'wb').write(bytes(60 << 20))",
        "error",
        error="OSError",
        message="No space left",
        after="print('long ' * 2000, 'next cell')",
    ),
    "K48 all, and a new kernel": Case(
        "import os\nfor p in '/tmp/t', '/dev/shm/t', '/work/t':\n"
        "    try: open(p, 'wb').write(bytes(70 << 20))\n    except OSError as e: print(e.errno)\n"
        "os._exit(1)",
        "died",
        "exit:1",
        "restarted",
        text=("28\n28\n28",),
        after="!rm -f /tmp/t /dev/shm/t /work/t; echo next cell",
    ),
    "K48 child": Case("!head -c 90000000 /dev/zero > big; rm big", text=("No space left",)),
    "K48 picture": Case(
        "from PIL import Image\nopen('fill', 'wb').write(bytes(47 << 20))\n"
        "Image.effect_noise((2000, 2000), 90).save('noise.png')",
        "error",
        error="OSError",
        after="!rm -f fill noise.png; echo next cell",
    ),
}
ALL = TIME | PROCESSES | OUTPUT | MEMORY


@pytest.mark.parametrize("case", ALL.values(), ids=ALL.keys())
def test_case(cells: Cells, case: Case) -> None:
    check(cells, case)


@pytest.mark.parametrize("name", WALLS)
def test_memory_held_by_files(name: WallName) -> None:
    """K46: files stay when the kernel dies of them. Where they leave no memory for another, the
    box is replaced and the model told."""
    limits = replace(LIMITS, memory_mb=300, work_mb=400)
    with opened(available_wall(name), limits=limits) as box:
        filled = box.run("with open('f', 'wb') as f:\n    while True: f.write(bytes(1 << 20))")
        assert (filled.status, filled.cause) == ("died", "out_of_memory")
        following = box.run("import os; print('next cell', os.listdir())")
        assert (following.status, following.kernel) == ("ok", "restarted")
        assert following.text == "next cell []"
        assert "files in the work directory are lost" in str(following.note)
        assert box.run("print(1)").kernel == "kept"
