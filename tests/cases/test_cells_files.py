"""Cells that touch files they should not, look for what is not theirs, or leave what breaks later
cells (K50, K52, K60, and what else lies about in a work directory)."""

from __future__ import annotations

import io
from collections.abc import Generator

import pytest
from PIL import Image

from sandbox.outputs import Execution
from sandbox.spec import InputFile
from tests.cases.cells import LIMITS, WALLS, Case, check, told
from tests.conftest import available_wall
from tests.sandbox.boxes import Cells, opened

buffer = io.BytesIO()
Image.new("RGB", (64, 48), "green").save(buffer, "PNG")
INPUT = InputFile("photo.png", buffer.getvalue())
PHOTO = "/mnt/data/photo.png"
SUM = f"import hashlib\nprint(hashlib.sha256(open('{PHOTO}', 'rb').read()).hexdigest())"


@pytest.fixture(scope="module", params=WALLS)
def cells(request: pytest.FixtureRequest) -> Generator[Cells]:
    with opened(available_wall(request.param), limits=LIMITS, inputs=(INPUT,)) as box:
        yield box


@pytest.fixture(autouse=True)
def swept(cells: Cells) -> Generator[None]:
    yield
    cells.run("%reset -f\n!cd /work && rm -rf ./* ./.[!.]*; chmod 755 . 2> /dev/null")


def refused(code: str, error: str = "OSError") -> Case:
    """The input stays as it is."""
    return Case(code, "error", error=error, after=SUM, shows=INPUT.sha256)


INPUTS = {
    "K50": refused(
        f'import os\nfrom PIL import Image\nImage.new("RGB", (5, 5)).save("{PHOTO}")\n'
        f'os.remove("{PHOTO}")'
    ),
    "K50 remove": refused(f"import os; os.remove('{PHOTO}')"),
    "K50 rename": refused(f"import os; os.rename('{PHOTO}', '/work/photo.png')"),
    "K50 append": refused(f"open('{PHOTO}', 'ab')", "PermissionError"),
    "K50 mode": refused(f"import os; os.chmod('{PHOTO}', 0o666)"),
    "K50 new beside it": refused("open('/mnt/data/new.txt', 'w')"),
    "K50 by cv2": Case(
        f"import cv2, numpy as np; cv2.imwrite('{PHOTO}', np.zeros((5, 5, 3), 'u1'))",
        text=("False",),
        after=SUM,
        shows=INPUT.sha256,
    ),
    "K50 through a link": refused(
        f"import os; os.symlink('{PHOTO}', 'photo.png'); open('photo.png', 'wb')"
    ),
    "K50 folder": refused("import shutil; shutil.rmtree('/mnt/data')"),
    "K50 mapped": refused(
        f"import mmap, os; mmap.mmap(os.open('{PHOTO}', os.O_RDWR), 0)", "PermissionError"
    ),
    "K50 shell": Case(
        f"!rm -f {PHOTO}; echo x > {PHOTO}",
        text=("Read-only file system",),
        after=SUM,
        shows=INPUT.sha256,
    ),
}
LEFT = {
    "K60": Case(
        'open("random.py", "w").write("raise SystemExit(1)\\n")\nimport os, pathlib\n'
        'p = pathlib.Path.home() / ".ipython/profile_default/startup"\n'
        'p.mkdir(parents=True, exist_ok=True)\n(p / "00.py").write_text("import os; os._exit(3)")\n'
        "os._exit(1)",
        "died",
        "exit:1",
        "restarted",
        after='print("new kernel works")',
        shows="new kernel works",
    ),
    "K60 libraries' names": Case(
        "import os\nfor name in ('json', 'numpy', 'zmq', 'typing', 'tornado', 'IPython', 'PIL',"
        " 'matplotlib', 'traitlets', 'types', 'string', 'logging', 'cv2', 'skimage'):\n"
        "    open(name + '.py', 'w').write('raise SystemExit(name)')\nos._exit(1)",
        "died",
        "exit:1",
        "restarted",
        after="import json, numpy as np, matplotlib.pyplot as plt\nplt.plot([1, 2])\n"
        "print(json.dumps(np.ones(1).tolist()), 'next cell')",
        shows="[1.0] next cell",
    ),
    "K60 start-up files": Case(
        "import os, sys\nhome = os.path.expanduser('~')\n"
        "site = f'{home}/.local/lib/python3.{sys.version_info[1]}/site-packages'\n"
        "for path in ('sitecustomize.py', 'usercustomize.py', '.pythonrc.py', '.pdbrc',"
        " '.ipython/profile_default/ipython_config.py', '.jupyter/jupyter_config.py',"
        " f'{site}/evil.pth', f'{site}/usercustomize.py', 'pyvenv.cfg'):\n"
        "    os.makedirs(os.path.dirname(os.path.join(home, path)), exist_ok=True)\n"
        "    open(os.path.join(home, path), 'w').write('import os; os._exit(9)')\n"
        "os.environ |= dict(PYTHONSTARTUP='/work/.pythonrc.py', PYTHONPATH='/work',"
        " PYTHONHOME='/nowhere', IPYTHONDIR='/work/.ipython')\nos._exit(1)",
        "died",
        "exit:1",
        "restarted",
    ),
    "K60 zygotes killed": Case(
        "import os\nfor p in os.listdir('/proc'):\n    if p.isdigit() and int(p) not in"
        " (1, os.getpid()):\n        try: os.kill(int(p), 9)\n        except OSError: pass\n"
        "os._exit(1)",
        "died",
        "exit:1",
        "restarted",
    ),
    "K60 settings of matplotlib": Case(
        "open('matplotlibrc', 'w').write('backend: TkAgg\\nfigure.figsize: 1, 1\\n')\n"
        "import os; os._exit(1)",
        "died",
        "exit:1",
        "restarted",
        after="import matplotlib.pyplot as plt; plt.plot([1]); print('next cell')",
    ),
    "K60 locked out": Case(
        "import os\ntry: os.chmod('/work', 0)\nexcept PermissionError: print('not ours')\n"
        "os._exit(1)",
        "died",
        "exit:1",
        "restarted",
        after="open('x', 'w').write('y'); print('next cell')",
    ),
    "K60 names taken": Case(
        "import glob, os, shutil\nfor path in glob.glob('/tmp/.*'): shutil.rmtree(path, True)\n"
        "shutil.rmtree('/tmp/outputs', True); open('/tmp/outputs', 'w').close()\nos._exit(1)",
        "died",
        "exit:1",
        "restarted",
        after="print('long ' * 2000, 'next cell')",
    ),
    "K60 again and again": Case(
        "import os; os._exit(1)",
        "died",
        "exit:1",
        "restarted",
        before=("import os; os._exit(1)",) * 3,
    ),
    "gone directory": Case(
        "import os\nos.makedirs('d/e'); os.chdir('d/e'); os.rmdir('../e'); os.rmdir('/work/d')",
        after="import os; open('f.txt', 'w').close(); print(os.getcwd(), 'next cell')",
        shows="/work next cell",
    ),
    "kept directory": Case(
        "import os\nos.makedirs('sub'); os.chdir('sub'); open('f.txt', 'w').write('x');",
        after="import os; print(os.getcwd(), 'next cell'); os.chdir('/work')",
        shows="/work/sub next cell",
    ),
    "everything removed": Case(
        "import shutil\nfor p in '/work', '/tmp', '/dev/shm': shutil.rmtree(p, True)"
    ),
    "own module": Case(
        "open('measure.py', 'w').write('def area(a, b): return a * b')\nimport measure\n"
        "measure.area(6, 7)",
        text=("42",),
    ),
}
DIRECTORY = {
    "names": Case(
        r"for name in ('a\nb', 'c\x1b[31m', b'\xff\xfe', 'ü' * 80, ' sp ace ', '-rf', 'q\'\"',"
        "\n    '\\u202e', 'tab\\tcr\\r'): open(name, 'w').close()"
    ),
    "links": Case(
        "import os, socket\nos.symlink('/etc/passwd', 'a.png'); os.symlink('.', 'self')\n"
        f"os.symlink('/mnt/data', 'data'); os.symlink('{PHOTO}', 'b.png')\n"
        "os.symlink('/dev/zero', 'zero.png'); os.symlink('/proc/self/fd/0', 'fd.png')\n"
        "os.mkfifo('fifo.png'); s = socket.socket(socket.AF_UNIX); s.bind('sock.png')",
        pictures=0,
    ),
    "hard link": Case(
        "from PIL import Image\nimport os\nImage.new('L', (9, 5)).save('a.png')\n"
        "os.link('a.png', 'b.png')",
        pictures=((9, 5),),
    ),
    "device": Case(
        "import os; os.mknod('null', 0o600 | 0o020000, os.makedev(1, 3))",
        "error",
        error="PermissionError",
    ),
    "deep": Case(
        "import os\nfor n in range(300): os.mkdir('d'); os.chdir('d')\n"
        "open('x.png', 'w').write('1'); os.chdir('/work')",
        pictures=0,
    ),
    "many": Case(
        "for n in range(6000): open(f'f{n}', 'w').close()", text=("files changed; the last 200",)
    ),
    "not what it says": Case(
        "open('text.png', 'w').write('hello'); open('zeros.jpg', 'wb').write(bytes(999))\n"
        "open('head.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n');",
        pictures=0,
        text=("not shown",),
    ),
    "grows while it is read": Case(
        "import threading, time\ndef grow():\n    with open('g.png', 'wb', 0) as f:\n"
        "        for _ in range(200): f.write(bytes(9999)); time.sleep(0.01)\n"
        "threading.Thread(target=grow).start(); time.sleep(0.1)",
        pictures=0,
        after="import time; time.sleep(2.2); print('next cell')",
    ),
    "animation of many frames": Case(
        "from PIL import Image\nf = [Image.new('L', (9, 5), n % 256) for n in range(500)]\n"
        "f[0].save('many.gif', save_all=True, append_images=f[1:])",
        pictures=((9, 5),),
        text=("frames",),
    ),
}
ALL = INPUTS | LEFT | DIRECTORY


@pytest.mark.parametrize("case", ALL.values(), ids=ALL.keys())
def test_case(cells: Cells, case: Case) -> None:
    execution = check(cells, case)
    assert all(file.path.isprintable() or case is DIRECTORY["names"] for file in execution.files)


def test_only_the_input_is_found(cells: Cells) -> None:
    """K52: and for siblings, nothing but text of the system's under any ending that data have."""
    found = cells.run(
        "import os\nhits = []\nfor root, _, files in os.walk('/'):\n"
        "    if root.startswith(('/proc', '/sys', '/usr', '/opt/conda')):\n        continue\n"
        "    for f in files:\n        if f.lower().endswith(('.parquet', '.jsonl', '.png', '.jpg',"
        " '.csv')):\n            hits.append(os.path.join(root, f))\nprint(len(hits), hits[:20])"
    )
    assert found.text == f"1 ['{PHOTO}']"
    others = cells.run(
        "import os\nfor root, _, files in os.walk('/'):\n"
        "    if root.startswith(('/proc', '/sys', '/usr', '/etc', '/var')): continue\n"
        "    for f in files:\n"
        "        if f.lower().endswith(('.jpeg', '.tif', '.tiff', '.gif', '.webp', '.npy', '.npz',"
        " '.pkl', '.sqlite', '.h5', '.arrow', '.tsv', '.zip', '.gz', '.env', '.key')):\n"
        "            print(os.path.join(root, f))"
    )
    assert others.text == ""


@pytest.mark.parametrize("word", ["gold_answer", "sk-not-for", "potrunner-run", "reference"])
def test_nothing_of_the_run_is_in_environment_or_mounts(cells: Cells, word: str) -> None:
    """K52: nor of other samples."""
    seen: Execution = cells.run(
        "import os\nprint(dict(os.environ))\n"
        "for p in '/proc/self/mountinfo', '/proc/1/environ', '/proc/1/cmdline':\n"
        "    try: print(open(p, errors='replace').read())\n    except OSError: pass"
    )
    assert seen.status == "ok"
    assert word not in told(seen)
