"""Cells that ask for input, exit, print strange text or break the streams (K01-K05, K21-K26,
K43-K45, K65): each input as it was met in the field, and others of its kind."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.cases.cells import LIMITS, WALLS, Case, check
from tests.conftest import available_wall
from tests.sandbox.boxes import Cells, opened

NOBODY = "nobody can type here"


@pytest.fixture(scope="module", params=WALLS)
def cells(request: pytest.FixtureRequest) -> Generator[Cells]:
    with opened(available_wall(request.param), limits=LIMITS) as box:
        yield box


def refused(code: str, name: str = "StdinNotImplementedError") -> Case:
    return Case(code, "error", error=name, message=NOBODY)


INPUT = {
    "K01": Case(
        'box = input("crop box? ")\nprint("got", box)',
        "error",
        error="StdinNotImplementedError",
        message=NOBODY,
        before=("kept = 41",),
        after="print(kept + 1, 'next cell')",
        shows="42 next cell",
    ),
    "K01 getpass": refused("import getpass; getpass.getpass()"),
    "K01 through builtins": refused("import builtins; builtins.input('y')"),
    "K01 interact": refused("import code; code.interact()"),
    "K01 embed": refused("from IPython import embed; embed()"),
    "K01 help": refused("help()"),
    "K01 stdin": Case(
        "import sys; print(repr(sys.stdin.read()), list(sys.stdin))", text=("'' []",)
    ),
    "K01 descriptor": Case("import os; print(os.read(0, 10))", text=("b''",)),
    "K01 terminal": Case("open('/dev/tty').read()", "error", error="OSError"),
    "K01 thread": Case(
        "import threading\nt = threading.Thread(target=input); t.start(); t.join()",
        text=("StdinNotImplementedError", NOBODY),
    ),
    "K01 forked child": Case(
        "import os\npid = os.fork()\nif pid == 0: input('child')\nprint(os.waitpid(pid, 0)[1])",
        text=("256", NOBODY),
    ),
    "K01 child": Case(
        "import subprocess, sys\n"
        "print(subprocess.run([sys.executable, '-c', 'input()'], capture_output=True).returncode)",
        text=("1",),
    ),
    "K01 shell": Case("!cat; read x; echo got $x", text=("got",), deadline=20),
    "K01 interactive shell": Case('!python3 -i -c "print(5 * 5)"', text=("25",), deadline=20),
    "K01 clicks": refused("import matplotlib.pyplot as plt\nplt.ginput(1)", "RuntimeError"),
    "K02": Case(
        "def f(x):\n    breakpoint()\n    return x + 1\nprint(f(1))",
        "error",
        error="RuntimeError",
        message="breakpoint() is not available",
        after="import sys; print(sys.gettrace(), 'next cell')",
        shows="None next cell",
    ),
    "K02 run": refused("import pdb; pdb.run('1+1')"),
    "K02 post mortem": refused("try: 1/0\nexcept Exception:\n    import pdb; pdb.post_mortem()"),
    "K02 set_trace": Case(
        "import pdb\ndef g():\n    pdb.set_trace()\n    return 1\ng()",
        "error",
        error="StdinNotImplementedError",
        after="import sys; print(sys.gettrace(), 'next cell')",
        shows="None next cell",
    ),
    "K02 magic": Case("%debug", "error", error="StdinNotImplementedError", before=("1/0",)),
    "K02 pdb on": Case("1/0", "error", error="ZeroDivisionError", before=("%pdb on",)),
    "K02 quit": Case("import bdb; raise bdb.BdbQuit", "error", error="BdbQuit"),
    "K02 trace function": Case(
        "import sys, threading\n"
        "sys.settrace(lambda *a: None); sys.setprofile(lambda *a: None)\n"
        "threading.settrace(lambda *a: None)",
        after="import sys; print(sys.gettrace(), sys.getprofile(), 'next cell')",
        shows="None None next cell",
    ),
}


def left(code: str, message: str = "", text: tuple[str, ...] = ()) -> Case:
    """An end of the cell, not of the kernel."""
    return Case(
        code,
        "error",
        error="SystemExit",
        message=message,
        text=text,
        before=("x = 41",),
        after="print(x + 1)",
        shows="42",
    )


EXIT = {
    "K04": left("exit"),
    "K04 quit": left("quit"),
    "K04 semicolon": left("exit;"),
    "K04 in a block": Case("if True:\n    exit\nprint('went on')", text=("went on",)),
    "K05": left(
        'import sys\nprint("loading")\nsys.exit("no axis labels found")\nprint("unreachable")',
        "no axis labels found",
        ("loading", "no axis labels found"),
    ),
    "K05 number": left("import sys; sys.exit(3)", "3"),
    "K05 none": left("import sys; sys.exit(None)"),
    "K05 object": left("import sys; sys.exit({'a': 1})", "{'a': 1}"),
    "K05 raised": left("raise SystemExit('bye')", "bye"),
    "K05 nested": left("def f(): exit()\ndef g(): f()\ng()"),
    "K05 async": left("import sys\nasync def f(): sys.exit('a')\nawait f()", "a"),
    "K05 exec": left("exec('import sys; sys.exit(\"e\")')", "e"),
    "K05 module": left(
        "open('leaves.py', 'w').write('def f(): exit(\"from module\")')\nimport leaves\nleaves.f()",
        "from module",
    ),
    "K05 caught": Case(
        "import sys\ntry: sys.exit('why')\nexcept SystemExit as e: print('caught', e)",
        text=("caught why",),
    ),
    "K05 thread": Case(
        "import sys, threading\n"
        "t = threading.Thread(target=sys.exit, args=('t',)); t.start(); t.join(); print('on')",
        text=("on",),
    ),
    "K05 registered": Case("import atexit, sys\n_ = atexit.register(sys.exit, 3)"),
    "K05 finaliser": Case("class A:\n    def __del__(self): raise SystemExit\nA(); print('on')"),
    "K05 base exceptions": Case("raise GeneratorExit", "error", error="GeneratorExit"),
    "K05 cancelled": Case(
        "import asyncio; raise asyncio.CancelledError('c')", "error", error="CancelledError"
    ),
    "K05 all tasks cancelled": Case(
        "import asyncio\nfor t in asyncio.all_tasks(): _ = t.cancel()", "ok"
    ),
    "K05 loop stopped": Case("import asyncio; asyncio.get_running_loop().call_soon(print, '!');"),
    "K05 asked": left("get_ipython().ask_exit()"),
    "K05 shutdown": Case(
        "get_ipython().kernel.do_shutdown(False); get_ipython().exit_now = True",
        after="import time; time.sleep(0.5); print('next cell')",
    ),
}

TEXT = {
    "K21": Case(
        'label = "peak \\ud83d at 5.2 ppm"\nprint(label)\nlabel',
        text=("peak \\ud83d at 5.2 ppm\n'peak \\ud83d at 5.2 ppm'",),
    ),
    "K21 display": Case(r"display('a\udcff'); {'k': '\ud800'}", text=("\\udcff", "\\ud800")),
    "K21 repr": Case("class R:\n    def __repr__(self): return '\\ud801'\nR()", text=("\\ud801",)),
    "K21 stderr": Case(r"import sys; print('\udfff', file=sys.stderr)", text=("\\udfff",)),
    "K21 name": Case(r"open('\ud83d.txt')", "error", error="UnicodeEncodeError"),
    "K21 in the code": Case("print('\ud83d')", "ok"),
    "K22": Case(
        'import os\nname = os.fsdecode(b"scan_\\xff.png")\nraise FileNotFoundError(name)',
        "error",
        error="FileNotFoundError",
        message="scan_\\udcff.png",
    ),
    "K22 key": Case(r"{}['\udc80']", "error", error="KeyError", message="\\udc80"),
    "K22 chain": Case(
        "try: raise ValueError('\\ud800')\nexcept ValueError as e: raise KeyError(2) from e",
        "error",
        error="KeyError",
        text=("\\ud800",),
    ),
    "K22 note": Case(
        r"e = ValueError('x'); e.add_note('\udcff'); raise e", "error", error="ValueError"
    ),
    "K24": Case(
        "import os, sys\nsys.stdout.flush()\nos.write(1, bytes(range(256)) * 4)\nprint()\n"
        "open('/bin/sh').read()[:20]",
        "error",
        error="UnicodeDecodeError",
        message="codec can't decode byte",
        text=("ABCDEFGHIJ", "�"),
    ),
    "K24 buffer": Case(
        r"import sys; _ = sys.stdout.buffer.write(b'\xff\x00A\x1b[31mB\n')", text=("�AB",)
    ),
    "K24 child": Case("!head -c 3000 /bin/sh"),
    "K24 cut character": Case(
        "import os, time\n"
        "for part in b'\\xe2\\x82', b'\\xac': _ = os.write(1, part); time.sleep(0.1)",
        text=("€",),
    ),
    "K24 bytes": Case(r"bytes(range(256))", text=("\\x00\\x01",)),
    "K25": Case(
        "import numpy as np\nnp.ones((2, 3)) @ np.ones((2, 3))",
        "error",
        error="ValueError",
        text=("----> 2 np.ones((2, 3)) @ np.ones((2, 3))", "size 2 is different from 3"),
    ),
    "K25 coloured message": Case(
        r"raise ValueError('\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07')",
        "error",
        error="ValueError",
        message="red link",
    ),
    "K25 syntax": Case("x = (", "error", error="SyntaxError"),
    "K25 child": Case("!printf '\\033[1;32mok\\033[0m\\n'", text=("ok",)),
    "K25 deep": Case(
        "def f(n): return f(n + 1)\nf(0)", "error", error="RecursionError", message="recursion"
    ),
    "K26": Case(
        "import sys, time\nfor i in range(0, 101):\n"
        "    sys.stderr.write(f\"\\rfitting {i:3d}% |{'#' * (i // 5):<20}|\")\n"
        '    sys.stderr.flush()\nsys.stderr.write("\\nchi2=1.07\\n")',
        text=("fitting 100% |####################|\nchi2=1.07",),
        hidden=("99%",),
    ),
    "K26 line ends": Case(r"print('one\r\ntwo\r\n', end='')", text=("one\ntwo",)),
    "K26 shorter": Case(r"print('loading...\rdone')", text=("doneing...",)),
    "K26 erased": Case(r"print('loading...\r\x1b[Kdone')", text=("done",), hidden=("loading",)),
    "K26 backspaces": Case(r"print('10%\b\b\b20%')", text=("20%",), hidden=("10%",)),
    "K26 child": Case(r"!printf 'step 1\rstep 2\n'", text=("step 2",), hidden=("step 1",)),
    "K26 flood": Case(
        "print('\\r'.join(f'{i:07d}' for i in range(100_000)))",
        text=("0099999",),
        hidden=("0099998", "omitted"),
    ),
}


def silenced(code: str, text: tuple[str, ...] = ()) -> Case:
    """What it does to the streams lasts until its end."""
    return Case(
        code,
        text=text,
        after="import os, sys\nprint('are you there')\nos.system('echo child')\n"
        "print('error', file=sys.stderr)",
        shows="are you there\nchild\n",
    )


STREAMS = {
    "K43": silenced("import sys\nsys.stdout.close()"),
    "K43 all": silenced("import sys\nsys.stdout.close(); sys.stderr.close(); sys.stdin.close()"),
    "K43 buffer": silenced("import sys\nprint('x')\nsys.stdout.buffer.close()", ("x",)),
    "K43 raw": silenced("import sys\nprint('x')\nsys.stdout.buffer.raw.close()", ("x",)),
    "K43 detached": silenced("import sys\nprint('x')\nsys.stdout.detach();", ("x",)),
    "K43 descriptors": silenced("import os\nfor n in 0, 1, 2: os.close(n)"),
    "K43 deleted": Case("import sys\ndel sys.stdout\nprint(1)", "error", error="RuntimeError"),
    "K43 deleted for good": Case(
        "import sys\ndel sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__",
        "error",
        error="AttributeError",
    ),
    "K43 encoding": silenced(
        "import sys\nsys.stdout.reconfigure(encoding='utf-8')\nprint('é')", ("é",)
    ),
    "K43 other encoding": Case(
        "import sys\nsys.stdout.reconfigure(encoding='ascii')\nprint('é')",
        "error",
        error="UnicodeEncodeError",
        after="print('é, next cell')",
    ),
    "K44": Case(
        'print(list("ab"))',
        "error",
        error="TypeError",
        message="not callable",
        before=('print = ("peak table")\nlist = [1, 2]\ndisplay = None\nimage_1 = 3',),
        after="del print, list, display\nprint(list('ab'), 'next cell')",
    ),
    "K44 figures": Case(
        "import matplotlib.pyplot as plt\nplt.plot([1, 2]);",
        pictures=1,
        before=("str = len = open = exec = type = isinstance = get_ipython = Exception = None",),
        after="%reset -f\nprint('next cell')",
    ),
    "K44 IPython's": Case(
        "_ = __ = ___ = In = Out = _ih = _oh = _dh = _i = None", after="'next' + ' cell'"
    ),
    "K44 builtins": Case("__builtins__ = {}"),
    "K44 name": Case("__name__ = __file__ = __doc__ = None", after="%reset -f\nprint('next cell')"),
    "K45": silenced(
        'import sys\nsys.stdout = sys.__stdout__\nprint("where does this go")',
        ("where does this go",),
    ),
    "K45 reload": silenced("import importlib, sys\nimportlib.reload(sys)\nprint('r')", ("r",)),
    "K45 redirected": silenced("import io, sys\nsys.stdout = io.StringIO()\nprint('hidden')"),
    "K45 entered": silenced(
        "import contextlib\nr = contextlib.redirect_stdout(open('/dev/null', 'w')); r.__enter__();"
    ),
    "K45 descriptor": silenced(
        "import os\nos.dup2(os.open('/dev/null', os.O_WRONLY), 1)\nprint('gone')"
    ),
    "K45 number": Case("import sys\nsys.stdout = 5\nprint(1)", "error", error="AttributeError"),
    "K45 class": Case(
        "import sys\nclass W:\n    def __getattr__(self, n): raise KeyError(n)\n"
        "sys.stdout = sys.stderr = W()\n1/0",
        "error",
        error="ZeroDivisionError",
    ),
    "K45 logging": Case(
        "logging.warning('second')",
        text=("second",),
        before=("import logging, sys\nlogging.basicConfig(stream=sys.stdout, force=True)",),
        after="logging.shutdown(); logging.warning('next cell')",
    ),
}

WHOLE = {
    "K65": Case(
        'import time\ntime.sleep(3)\nprint("slow but fine")',
        text=("slow but fine",),
        after='"""only a docstring"""',
        shows="only a docstring",
    ),
    "K65 empty": Case("", pictures=0),
    "K65 blank": Case(" \n\t\n", pictures=0),
    "K65 comment": Case("# only a comment"),
    "K65 pass": Case("pass;"),
    "K65 awaited": Case("import asyncio\nawait asyncio.sleep(0.3)\nprint('awaited')", text=("aw",)),
    "K65 own snippet": Case("get_ipython().run_cell('print(1 + 1)');", text=("2",)),
}
ALL = INPUT | EXIT | TEXT | STREAMS | WHOLE


@pytest.mark.parametrize("case", ALL.values(), ids=ALL.keys())
def test_case(cells: Cells, case: Case) -> None:
    check(cells, case)


@pytest.mark.parametrize("code", ["", "# only a comment", "x = 1"])
def test_nothing_is_a_defined_result(cells: Cells, code: str) -> None:
    assert cells.run(code).outputs == ()
