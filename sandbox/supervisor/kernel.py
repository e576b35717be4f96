"""What a forked kernel runs: ipykernel over `ipc://`, with the box's capture and hooks.

`run` never returns. The parent process is the zygote; everything here happens after the fork.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import sys
from typing import Any

import zmq
from ipykernel.iostream import IOPubThread
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from IPython.core.error import StdinNotImplementedError
from IPython.core.profiledir import ProfileDir
from jupyter_client.session import Session
from traitlets.config import Config

from . import belonging, interpreter
from .capture import Capture
from .failures import describe
from .hooks import Hooks, no_input
from .linux import PR_SET_DUMPABLE, prctl
from .shell import BoxShell, encodable_reply
from .spec import KernelSpec

DRAW_SECONDS = 0.5
_SHOWN = frozenset(
    {"display_data", "update_display_data", "execute_result", "error", "clear_output"}
)


class BoxSession(Session):
    """Tells the supervisor of each visible message before it is sent, so that order is kept."""

    capture: Any = None

    def send(self, stream: Any, msg_or_type: Any, *args: Any, **kwargs: Any) -> Any:
        typed = isinstance(msg_or_type, str)
        kind = msg_or_type if typed else msg_or_type["header"]["msg_type"]
        if self.capture is None or kind not in _SHOWN:
            return super().send(stream, msg_or_type, *args, **kwargs)
        if self.capture.is_copy or self.capture.muted():
            return None
        if typed:
            content = args[0] if args else kwargs.pop("content", None)
            parent = args[1] if len(args) > 1 else kwargs.pop("parent", None)
            msg_or_type = self.msg(
                msg_or_type,
                content=content,
                parent=parent,
                header=kwargs.pop("header", None),
                metadata=kwargs.pop("metadata", None),
            )
            args = (None, None, *args[2:])
        self.capture.before_message(msg_or_type["header"]["msg_id"])
        try:
            return super().send(stream, msg_or_type, *args, **kwargs)
        except UnicodeEncodeError:  # a lone surrogate, of which no JSON can be made
            msg_or_type["content"] = encodable_reply(msg_or_type["content"])
            return super().send(stream, msg_or_type, *args, **kwargs)


class BoxKernel(IPythonKernel):
    """An IPython kernel whose cells are framed by `Capture`."""

    shell_class = BoxShell
    capture: Any = None
    hooks: Any = None

    async def do_execute(self, code: str, silent: bool, *args: Any, **kwargs: Any) -> Any:
        try:
            self.capture.begin()
        except OSError:
            os._exit(os.EX_OSERR)  # nothing it prints would be seen: of no use any more
        interpreter.tidy()
        end = "KeyboardInterrupt"
        try:
            reply = await self._execute(code, silent, *args, **kwargs)
            end = reply["ename"] if reply["status"] == "error" else ""
        finally:
            self._finish(end)
        return encodable_reply(reply)

    async def _execute(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Always a reply; a failed one says what ended the cell's own code, even where the cell has
        replaced what would have shown it."""
        shell: Any = self.shell
        shell.failure = None
        shell.restore_methods()
        shell.restore_names()
        shell.displayhook.pub_socket = shell.display_pub.pub_socket = self.iopub_socket
        try:
            reply: dict[str, Any] = await super().do_execute(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - an interrupt, or what the cell broke
            reply = {"status": "error", "execution_count": 0, "user_expressions": {}, "payload": []}
            reply |= describe(error)
        if reply["status"] == "error" and shell.failure is not None:
            reply |= describe(shell.failure)
        shell.failure = None
        return reply

    def raw_input(self, prompt: str = "") -> str:
        raise StdinNotImplementedError(no_input("input()"))

    def getpass(self, *_: Any, **__: Any) -> str:
        raise StdinNotImplementedError(no_input("getpass()"))

    def _finish(self, end: str) -> None:
        """`end` is the name of the exception that ended the cell, if one did."""
        if self.capture.is_copy:
            # A child that the cell forked fell out of its code: it must not act as the kernel.
            self.capture.flush()
            os._exit(bool(end))
        if end == "KeyboardInterrupt":
            # The deadline has passed: what takes longer to draw would cost the kernel.
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, DRAW_SECONDS)
        try:
            self.hooks.show_open_figures()
        except KeyboardInterrupt:
            print("Interrupted while drawing figures.", file=sys.stderr)  # noqa: T201
        # From here on an interrupt would only lose the reply; the next request takes them again.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self.shell is not None and self.shell.history_manager is not None:
            self.shell.history_manager.outputs.clear()
        interpreter.stop_timers()
        self.capture.end()


class BoxApp(IPKernelApp):
    """Starts a kernel without files, command line, start-up scripts, stdin or heartbeat."""

    kernel_class = BoxKernel

    def init_iopub(self, context: Any) -> None:
        """Without the pipe for forked children, which would listen on a TCP port of the loopback:
        what they print goes through the capture, and messages they have none."""
        self.iopub_socket = context.socket(zmq.XPUB)
        self.iopub_socket.linger = 1000
        self.iopub_port = self._bind_socket(self.iopub_socket, self.iopub_port)
        self.configure_tornado_logger()
        self.iopub_thread = IOPubThread(self.iopub_socket, pipe=False, session=self.session)  # pyright: ignore[reportArgumentType] - typed as bool
        self.iopub_thread.start()
        self.iopub_socket = self.iopub_thread.background_socket

    def start_up(self, spec: KernelSpec, capture: Capture) -> None:
        self.transport, self.ip = "ipc", spec.address
        self.shell_port, self.iopub_port, self.stdin_port, self.control_port = 1, 2, 3, 4
        self.outstream_class = None
        self.config = Config(
            {
                "HistoryManager": {"enabled": False},
                "InteractiveShell": {"colors": "nocolor"},
                "Completer": {"use_jedi": False},
            }
        )
        self.session = BoxSession(parent=self, key=spec.key.encode())
        self.session.capture = capture
        self.profile_dir = ProfileDir(location=f"{spec.address}-profile")
        self.init_sockets()
        self.init_io()
        self.init_signal()
        self.init_kernel()
        self.kernel.debugpy_stream = None  # there is no debugger: see zygote
        # Last: a file of the model's that has a library's name must not stand in its place.
        sys.path.append("")
        self.init_shell()
        assert isinstance(self.kernel, BoxKernel)
        self.kernel.capture = capture
        self.kernel.hooks = Hooks(self.shell, spec.max_pixels, spec.seed)
        self.kernel.hooks.install(spec.work_dir)
        _wake_for_signals(asyncio.get_event_loop())
        for name in ("FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
            os.environ.pop(
                name, None
            )  # ipykernel asks child programs for colours; nobody sees them
        os.environ["TERM"] = "dumb"


def _wake_for_signals(loop: asyncio.AbstractEventLoop) -> None:
    """An interrupt cancels a cell that awaits something, but its loop sleeps until it is told."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    loop.add_reader(reading, os.read, reading, 4096)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)


def run(channel: socket.socket, spec: KernelSpec) -> None:
    """Becomes the kernel; ends with the process."""
    os.setsid()
    channel.send(b"p" + str(os.getpid()).encode())
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)
    _limits()
    os.chdir(spec.work_dir)
    os.environ.update(environment(spec))
    capture = Capture(channel)
    belonging.install(capture.muted)
    interpreter.remember()
    app = BoxApp.instance()
    app.start_up(spec, capture)
    capture.say(b"r")
    app.start()
    os._exit(0)


def environment(spec: KernelSpec) -> dict[str, str]:
    """What libraries look for; none of it comes from the host."""
    threads = str(spec.threads)
    return {
        "HOME": spec.work_dir,
        "IPYTHONDIR": f"{spec.state_dir}/ipython",
        "MPLCONFIGDIR": f"{spec.state_dir}/matplotlib",
        "XDG_CACHE_HOME": f"{spec.state_dir}/cache",
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "NUMEXPR_NUM_THREADS": threads,
    }


def _limits() -> None:
    """No core files; first to go when memory runs out; readable by itself again."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    prctl(PR_SET_DUMPABLE, 1)
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
            file.write("1000")
    except OSError:
        return  # an older kernel or a closed /proc: the limit itself still holds
