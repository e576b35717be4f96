"""Cells that show things (K27-K29, K33, K35, K38, K54, K55, K63): each input as it was met in the
field, and others of its kind. How many pictures, of what size and colour, and what is said."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.cases.cells import LIMITS, WALLS, Case, check
from tests.conftest import available_wall
from tests.sandbox.boxes import Cells, opened

PREPARE = """
from IPython.display import *
from PIL import Image as PI
import base64, io, os, cv2, numpy as np, matplotlib.pyplot as plt
red = PI.new("RGB", (30, 20), (255, 0, 0))
blue = PI.new("RGB", (20, 30), (0, 0, 255))
_b = io.BytesIO(); red.save(_b, "PNG"); png = _b.getvalue()
"""
RED, BLUE, WHITE, GREEN = (255, 0, 0), (0, 0, 255), (255, 255, 255), (0, 128, 0)
PLOT = "fig, ax = plt.subplots(figsize=(2, 1)); ax.plot([1, 2])\n"


@pytest.fixture(scope="module", params=WALLS)
def cells(request: pytest.FixtureRequest) -> Generator[Cells]:
    with opened(available_wall(request.param), limits=LIMITS) as box:
        assert box.run(PREPARE).status == "ok"
        yield box


CHANGING = {
    "K27": Case(
        "from IPython.display import clear_output\nimport matplotlib.pyplot as plt\n"
        "for i in range(40):\n    clear_output(wait=True)\n"
        "    plt.figure(figsize=(1, 1)); plt.plot([0, i]); plt.show()\n    print('step', i)",
        text=("step 39",),
        hidden=("step 38",),
        pictures=1,
        deadline=60,
        within=60,
    ),
    "K27 at once": Case(
        "for i in range(9):\n    display(red); print('step', i); clear_output()",
        hidden=("step",),
        pictures=0,
    ),
    "K27 text": Case(
        "for i in range(200):\n    clear_output(wait=True)\n    print('step', i)",
        text=("step 199",),
        hidden=("step 198",),
    ),
    "K27 over the limit": Case(
        "for i in range(20): display(PI.new('L', (9, 5), i))\nclear_output(); display(blue)",
        pictures=((20, 30),),
        hidden=("omitted",),
    ),
    "K27 waits for ever": Case("print('stays')\nclear_output(wait=True)", text=("stays",)),
    "K27 before an error": Case(
        "print('gone')\nclear_output(wait=True)\n1/0", "error", error="ZeroDivisionError"
    ),
    "K28": Case(
        'h = display("before", display_id=True)\nh.update("after")',
        text=("after",),
        hidden=("before",),
        after='h.update("changed from a later cell")',
        shows="changed from a later cell",
    ),
    "K28 many": Case(
        "for i in range(300): display(i, display_id=f'd{i % 3}', update=i > 2)",
        text=("297\n298\n299",),
        hidden=("296",),
    ),
    "K28 unknown": Case("update_display('new', display_id='nowhere')", text=("new",)),
    "K28 picture": Case(
        "h = display(red, display_id=True); h.update(blue)", pictures=((20, 30),), colour=BLUE
    ),
    "K28 to text": Case(
        "h = display(red, display_id=True); h.update('t')", text=("t",), pictures=0
    ),
    "K28 figure": Case(
        "fig, ax = plt.subplots(figsize=(1, 1)); h = display(fig, display_id=True)\n"
        "for n in range(3): ax.plot([n, 1]); h.update(fig)\nplt.close(fig)",
        pictures=1,
    ),
    "K28 Python's progress": Case(
        "import sys\nfor n in range(500): print(f'\\r{n}/499', end='', file=sys.stderr)",
        text=("499/499",),
        hidden=("498/",),
    ),
    "K29": Case(
        "from PIL import Image\nh = display(display_id=True)\nfor g in (0, 128, 255):\n"
        '    h.update(Image.new("RGB", (32, 32), (g, g, g)))\ndel Image',
        pictures=((32, 32),),
        colour=WHITE,
    ),
    "K29 never filled": Case("h = display(display_id=True)", pictures=0, hidden=("None",)),
    "K29 in order": Case(
        "h = display(display_id=True); display(blue); h.update(red)", pictures=((30, 20), (20, 30))
    ),
}
SHOWN = {
    "K33": Case(
        "import matplotlib.pyplot as plt\nfig, ax = plt.subplots(figsize=(2, 2))\n"
        "ax.plot([1, 2])\nfig",
        pictures=1,
    ),
    "K33 shown and last": Case(PLOT + "plt.show()\nfig", pictures=1),
    "K33 displayed and left open": Case(PLOT + "display(fig)", pictures=1),
    "K33 twice": Case(PLOT + "plt.show(); plt.show(); display(fig); display(fig)", pictures=1),
    "K33 closed and last": Case(PLOT + "plt.close(); fig", pictures=1),
    "K33 without pyplot": Case(
        "from matplotlib.figure import Figure\n"
        "f = Figure(figsize=(1, 1)); f.add_subplot().plot([1, 2]); f",
        pictures=1,
    ),
    "K33 two": Case(PLOT + PLOT + "ax.plot([2, 1]);", pictures=2),
    "K33 changed after show": Case(
        PLOT + "plt.show()\nax.plot([5, 1, 5]); display(fig)", pictures=2
    ),
    "K33 later cell": Case("fig", pictures=1, before=(PLOT,)),
    "K33 none left over": Case("print('x')", pictures=0, before=(PLOT + "1/0",)),
    "K33 animation": Case(
        "import matplotlib.animation as an\nfig, ax = plt.subplots(figsize=(1, 1))\n"
        "line, = ax.plot([0, 1])\nmove = lambda i: line.set_data([0, 1], [0, i])\n"
        "HTML(an.FuncAnimation(fig, move, frames=2).to_jshtml())",
        pictures=1,
        text=("HTML output omitted",),
        hidden=("base64",),
    ),
    "K33 seen by skimage": Case(
        "import skimage.io as sio, warnings\nwarnings.simplefilter('ignore')\n"
        "sio.imshow(np.eye(5)); sio.show()",
        pictures=1,
    ),
    "K35": Case(
        "from PIL import Image\nimport io\nfrom IPython.display import display, Image as Im\n"
        'b = io.BytesIO(); Image.new("RGB", (40, 20), "red").save(b, "PNG")\n'
        'display(Im(data=b.getvalue()))\nImage.new("RGB", (20, 40), "blue")',
        pictures=((40, 20), (20, 40)),
        colour=BLUE,
        hidden=("PIL", "Image"),
        after="from IPython.display import Image; print('next cell')",
    ),
    "K35 from a file": Case(
        "red.save('/tmp/x.png'); display(Image('/tmp/x.png'))", pictures=((30, 20),), colour=RED
    ),
    "K35 several at once": Case(
        "display(red, blue, 'text', 5)", pictures=((30, 20), (20, 30)), text=("'text'\n5",)
    ),
    "K35 raw bundle": Case(
        "display({'image/png': base64.b64encode(png).decode(), 'text/plain': 'x'}, raw=True)",
        pictures=((30, 20),),
        hidden=("x",),
    ),
    "K35 its own method": Case(
        "class R:\n    def _repr_png_(self): return png\nR()", pictures=((30, 20),)
    ),
    "K35 its own bundle": Case(
        "class R:\n    def _repr_mimebundle_(self, **k): return {'image/png': png}, {}\nR()",
        pictures=((30, 20),),
    ),
    "K35 JPEG": Case(
        "j = io.BytesIO(); blue.save(j, 'JPEG'); Image(data=j.getvalue())", pictures=((20, 30),)
    ),
    "K35 shown by PIL and cv2": Case(
        "red.show(); cv2.imshow('w', np.full((7, 9, 3), (255, 0, 0), 'u1')); cv2.waitKey(0);",
        pictures=((30, 20), (9, 7)),
        colour=BLUE,
    ),
    "K35 not base64": Case("display({'image/png': '!', 'text/plain': 'x'}, raw=True)", pictures=0),
    "K35 damaged": Case("Image(data=png[:40])", pictures=0, text=("not shown",)),
    "K35 no picture": Case("display(Image(data=b'garbage'))", pictures=0, text=("not shown",)),
    "K35 method that fails": Case(
        "class R:\n    def _repr_png_(self): raise KeyError('drawn')\nR()",
        "error",
        error="KeyError",
        pictures=0,
    ),
    "K35 in a list": Case("[red, blue]", pictures=0, text=("size=30x20",)),
    "K38": Case(
        "import base64, os\nfrom IPython.display import HTML, display\n"
        "blob = base64.b64encode(os.urandom(400000)).decode()\n"
        'display(HTML(f"<img src=\'data:image/png;base64,{blob}\'>"))\nprint("shown")',
        text=("shown", "HTML output omitted (533 kB)"),
        hidden=("data:image",),
        pictures=0,
    ),
    "K38 last expression": Case("HTML('<b>x</b>')", text=("HTML output omitted",), hidden=("<b>",)),
    "K38 table": Case(
        "import pandas as pd; pd.DataFrame({'a': [1, 2]})", text=("0  1",), hidden=("<table",)
    ),
    "K38 SVG": Case(
        "SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')",
        text=("SVG output omitted",),
        hidden=("<svg",),
    ),
    "K38 useful text beside": Case(
        "class R:\n    def _repr_html_(self): return '<b>x</b>'\n"
        "    def __repr__(self): return 'a useful text'\nR()",
        text=("a useful text",),
        hidden=("<b>",),
    ),
    "K38 Markdown": Case("Markdown('**bold** words')", text=("bold",)),
    "K38 script": Case("Javascript('alert(1)')", text=("omitted",), hidden=("alert",)),
    "K38 sound": Case(
        "import warnings; warnings.simplefilter('ignore')\nAudio(np.ones(9000), rate=9000)",
        text=("HTML output omitted",),
        hidden=("base64",),
    ),
}
LARGE = {
    "K54": Case(
        "import matplotlib.pyplot as plt\nplt.plot([0, 1])\n"
        'plt.text(5000, 0.5, "label placed in pixel units")\nplt.show()',
        pictures=1,
        after=PLOT + "plt.show(); print('next cell')",
    ),
    "K54 absurdly far": Case(
        "plt.plot([0, 1]); plt.text(1e9, 1e9, 'far'); plt.show()", text=("Figure not drawn",)
    ),
    "K54 infinitely far": Case(
        "plt.plot([0, 1]); plt.annotate('x', (float('nan'), 1e308)); plt.show()", pictures=1
    ),
    "K54 bad formula": Case(
        "plt.plot([0, 1]); plt.text(0, 0, r'$\\frac{$'); plt.show()",
        text=("Figure not drawn: ValueError",),
        pictures=0,
    ),
    "K54 displayed": Case(
        "fig, ax = plt.subplots(); ax.text(0, 0, r'$\\frac{$'); plt.close(fig); display(fig)",
        error="ValueError",
        pictures=0,
    ),
    "K54 tiny": Case("plt.figure(figsize=(.001, .001)); plt.plot([1]);", text=("not drawn",)),
    "K54 not a number": Case("plt.figure(figsize=(float('nan'), 1))", "error", error="ValueError"),
    "K55": Case(
        "import matplotlib.pyplot as plt\nplt.figure(figsize=(600, 300), dpi=100)\n"
        "plt.plot([0, 1])\nplt.show()",
        pictures=1,
        text=("60000x30000 pixels was shrunk",),
    ),
    "K55 displayed": Case(
        "f = plt.figure(figsize=(600, 300)); plt.plot([1, 2]); plt.close(f); f",
        pictures=1,
        text=("60000x30000",),
    ),
    "K55 dots": Case("plt.figure(figsize=(2, 2), dpi=100_000); plt.plot([1]);", pictures=1),
    "K55 thin": Case("plt.figure(figsize=(20_000, 1)); plt.plot([1, 2]);", text=("shrunk",)),
    "K55 picture": Case(
        "display(PI.new('1', (9000, 9000)))", pictures=1, text=("9000x9000", "shrunk")
    ),
    "K55 saved": Case(
        "PI.new('L', (9000, 9000)).save('large.png')", pictures=1, text=("9000x9000", "shrunk")
    ),
    "K55 saved, too large": Case(
        "import struct, zlib\n"
        "def chunk(t, d): return struct.pack('>I', len(d)) + t + d + struct.pack('>I', "
        "zlib.crc32(t + d))\n"
        "head = chunk(b'IHDR', struct.pack('>IIBBBBB', 40_000, 40_000, 1, 0, 0, 0, 0))\n"
        "rows = zlib.compressobj(9); data = b''.join(rows.compress(bytes(5001 * 1000)) "
        "for _ in range(40)) + rows.flush()\n"
        "open('bomb.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + head + chunk(b'IDAT', data)"
        " + chunk(b'IEND', b'')); len(data) < 4_000_000",
        pictures=0,
        text=("True", "not shown"),
        deadline=60,
        within=60,
    ),
    "K63": Case(
        'from PIL import Image\nim = Image.new("RGB", (200, 100)).crop((50, 20, 50, 80))\n'
        "print(im.size)\nim",
        text=("(0, 60)", "Empty picture (0x60)"),
        pictures=0,
        after="from IPython.display import Image; print('next cell')",
    ),
    "K63 displayed": Case("display(PI.new('RGB', (5, 0)))", text=("Empty picture (5x0)",)),
    "K63 shown": Case("PI.new('L', (0, 0)).show()", text=("Empty picture (0x0)",), pictures=0),
    "K63 by cv2": Case(
        "cv2.imshow('z', np.zeros((0, 5), 'u1'))",
        "error",
        error="ValueError",
        message="shape (0, 5)",
    ),
    "K63 no bytes": Case("Image(data=b'')", pictures=0),
    "K63 empty file": Case("open('empty.png', 'w').close()", pictures=0),
    "K63 empty figure": Case("plt.figure();", pictures=0),
}
ALL = CHANGING | SHOWN | LARGE


@pytest.mark.parametrize("case", ALL.values(), ids=ALL.keys())
def test_case(cells: Cells, case: Case) -> None:
    check(cells, case)
