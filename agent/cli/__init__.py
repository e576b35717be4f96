"""The `pot` command: one module a subcommand; only the one that is asked for is imported."""

from __future__ import annotations

import contextlib
import difflib
import errno
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agent.cli.problem import Problem
from agent.cli.streams import make_ready
from agent.signals import INTERRUPTED, SIGNALS, Interrupted, handled, leave_at_once

if TYPE_CHECKING:
    import typer

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("agent.cli.evaluating", "Evaluate a model on a benchmark."),
    "ask": ("agent.cli.ask", "Ask one question about pictures."),
    "exec": ("agent.cli.exec", "Run cells in a box, one JSON line each."),
    "parse": ("agent.cli.parse", "Show the code and the answer that a reply holds."),
    "score": ("agent.cli.score", "Score a run again, or a file of responses."),
    "build": ("agent.cli.build", "Make benchmark items with known answers."),
    "mock-endpoint": ("agent.cli.mock_endpoint", "Serve a scripted model over real HTTP."),
    "list": ("agent.cli.listing", "List benchmarks and tasks."),
    "doctor": ("agent.cli.doctor", "Say which walls work here and what is missing."),
    "image": ("agent.cli.image", "Build the sandbox image."),
    "report": ("agent.cli.report", "Write the report page of a run."),
    "version": ("agent.cli.version", "Print the version."),
}
"""Name → module with a function `command` or a Typer `app`, one-line help."""

STYLE: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "no_args_is_help": False,
}
"""How every command's Typer is made: plain help, no completion installer, our own error lines."""


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and gives its exit code; prints one line for what a user got wrong."""
    try:
        with handled():
            return _run(arguments)
    except Interrupted:
        return complain("interrupted", INTERRUPTED)


def _run(arguments: Sequence[str]) -> int:
    import typer  # a tenth of a second, in which Ctrl-C must be one line already

    if any("\0" in word for word in arguments):  # no shell can pass one; a program can
        return complain("expected arguments without NUL characters", 2)
    name = {"--version": "version"}.get(arguments[0], arguments[0]) if arguments else ""
    try:
        if name in ("", "--help", "-h", "help"):
            typer.echo(usage())
            return 0 if name else 2
        code = dispatch(name, arguments[1:])
    except Problem as problem:
        return complain(str(problem), problem.code)
    except typer.Abort:
        return complain("interrupted", INTERRUPTED)
    except typer.TyperException as error:
        return complain(f"{describe(error)} (see: pot {name} --help)", 2)
    except BrokenPipeError:
        # The reader of our output went away (`pot list | head`): not an error of ours. Python
        # flushes stdout once more at exit, so give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO):  # EIO: the terminal is gone
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return complain(f"cannot write the output: {error.strerror}", 1)
    return code if isinstance(code, int) else 0


def dispatch(name: str, arguments: Sequence[str]) -> object:
    """Imports the one module that is needed and hands it the rest of the line."""
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean `pot {near[0]}`?" if near else "see: pot --help"
        raise Problem(f"expected a command, found {name!r}; {hint}")
    import typer
    from typer.main import get_command

    module = importlib.import_module(COMMANDS[name][0])
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(**STYLE)
        app.command(name=name)(module.command)
    command = get_command(app)
    try:
        # Not its `main`: that takes a reader that went away for an error of code 1, in silence.
        with command.make_context(f"pot {name}", list(arguments)) as context:
            return command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code


def usage() -> str:
    width = max(map(len, COMMANDS))
    rows = [f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    head = "potrunner: run program-of-thought agents on images in a sandbox."
    tail = "Options of a command: pot COMMAND --help"
    return "\n".join(["Usage: pot COMMAND [ARGS]...", "", head, "", "Commands:", *rows, "", tail])


def describe(error: typer.TyperException) -> str:
    """The parser's own sentence, with the option's name where it has one."""
    formatted = getattr(error, "format_message", None)
    return str(formatted()) if callable(formatted) else str(error)


def complain(message: str, code: int) -> int:
    """One line on stderr, whatever the message holds."""
    with contextlib.suppress(OSError):  # full or gone: the exit code still tells
        print("pot: " + " ".join(message.split()), file=sys.stderr)  # noqa: T201
    return code


def main() -> None:
    whole = run  # by another name: the import of agent.cli.run below takes this one
    with handled() as ending:
        make_ready()
        with ending.acting(leave_at_once):
            _load(sys.argv[1:2])
        code = _flushed(whole(sys.argv[1:]))
        if ending.asked is not None:
            # Its threads may still be busy with what nobody wants any more. Whatever else went
            # wrong then (its terminal was gone), a signal had ended it.
            os._exit(INTERRUPTED if code else 0)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)  # no traceback out of Python's own end
    sys.exit(code)


def _load(name: Sequence[str]) -> None:
    """Imports what the command needs: half a second in which an exception out of a signal's handler
    could get lost in a callback, and in which there is nothing to put in order."""
    import typer.main

    assert typer.main, "loaded"
    for word in name:
        if word in COMMANDS:
            importlib.import_module(COMMANDS[word][0])


def _flushed(code: int) -> int:
    """The exit code when all that was printed is out."""
    try:
        sys.stdout.flush()
    except OSError as error:  # standard output is full or gone: say so, once
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return complain(f"cannot write the output: {error.strerror}", code or 1)
    return code
