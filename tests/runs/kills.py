"""A run killed with SIGKILL at random moments and at exact stages of a box's life, then resumed.

    python -m tests.runs.kills docker 30 3        # 30 kills at random, 3 at each stage
    python -m tests.runs.kills bubblewrap 10 3

The model's programs run in real boxes; replies come over HTTP from `pot mock-endpoint`, whose log
says what was paid for. Prints one line a kill and the figures at the end; the exit code is 1 if
anything was left on the host, lost, doubled or paid for twice without need. `test_kills.py` runs a
short version; POT_KILLS=30,3 makes that one long.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docker import APIClient

from agent.rundir import RunDir
from sandbox.cgroups import group_parents
from sandbox.engine import connect
from sandbox.identity import process_start
from sandbox.inputs import staging_root
from sandbox.reap_child import FOLDER_PREFIX, OWNER_FILE, marked_processes

ROOT = Path(__file__).resolve().parents[2]
POT = [sys.executable, "-m", "agent"]
WORKERS = 3
STAGES = {
    "docker": ("create", "attach", "start", "paused", "pool"),
    "bubblewrap": ("spawned", "started", "stopped", "pool"),
}
"""What a box has just gone through when its runner is killed. `paused` and `stopped`: somebody
froze it, so that it cannot see the end of its stream; `pool`: workers of a process pool of the
runner's, started while boxes were open, live on."""

GONE_SECONDS = 5.0
"""Within which nothing may be left, on a machine that has nothing else to do."""
WITH_POOL = """
import multiprocessing, sys, threading, time
from concurrent.futures import ProcessPoolExecutor
from agent.cli import run

def feed(pool):
    for _ in range(12):
        pool.submit(time.sleep, 600)
        time.sleep(0.5)

if __name__ == "__main__":
    pool = ProcessPoolExecutor(12, mp_context=multiprocessing.get_context("spawn"))
    threading.Thread(target=feed, args=(pool,), daemon=True).start()
    sys.exit(run(sys.argv[1:]))
"""


@dataclass(slots=True)
class Figures:
    """What came out of all kills."""

    kills: int = 0
    boxes: int = 0
    """Kills at which the engine, or the process table, showed a box of the runner."""
    longest: float = 0.0
    """Seconds until nothing was left, at worst."""
    faults: list[str] = field(default_factory=list[str])
    samples: int = 0
    replies: int = 0
    """Different requests that were answered."""
    again: int = 0
    """Answered more than once: in flight at a kill."""
    workers_alive: int = 0


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    start: str | None
    command: str

    @property
    def alive(self) -> bool:
        return self.start is not None and process_start(self.pid) == self.start

    @property
    def of_pool(self) -> bool:
        # Looked at late: one that was first seen between fork and exec has its parent's line.
        with contextlib.suppress(OSError):
            return b"multiprocessing" in Path(f"/proc/{self.pid}/cmdline").read_bytes()
        return False


class Runner:
    """A started `pot run` and every process that it was ever seen to have below it."""

    def __init__(self, arguments: list[str], script: Path | None) -> None:
        command = [sys.executable, str(script)] if script else POT
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.pid = self.process.pid
        self.seen: dict[int, Process] = {}
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            for pid in below(self.pid):
                if pid not in self.seen:
                    with contextlib.suppress(OSError):
                        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                        self.seen[pid] = Process(pid, process_start(pid), command.decode())


def below(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *below(int(child))]
    return found


class Kills:
    """One run that is killed and resumed until it is done, then another, until all kills are."""

    def __init__(
        self,
        wall: str,
        folder: Path,
        items: Path,
        repeats: int,
        dice: random.Random,
        gone_seconds: float,
    ) -> None:
        self.wall = wall
        self.folder = folder
        self.items = items
        self.repeats = repeats
        self.dice = dice
        self.gone_seconds = gone_seconds
        self.figures = Figures()
        self.api: APIClient | None = connect() if wall == "docker" else None
        self.script = folder / "with_pool.py"
        self.script.write_text(WITH_POOL)
        self.rounds = 0

    def work(self, stages: Iterable[str], say: Callable[[str], None]) -> Figures:
        waiting = list(stages)
        self.dice.shuffle(waiting)
        while waiting:
            self.rounds += 1
            self._round(waiting, say)
        return self.figures

    def _round(self, waiting: list[str], say: Callable[[str], None]) -> None:
        out, log = self.folder / f"run{self.rounds}", self.folder / f"log{self.rounds}.jsonl"
        served = ["--data", str(self.items), "--model", "scripted", "--delay", "0.1"]
        kills = 0
        with endpoint(*served, "--log", str(log)) as url:
            begin = ["run", "cwi", "--data", str(self.items), "--model", "m", "--base-url", url]
            begin += ["--sandbox", self.wall, "--workers", str(WORKERS), "--seed", "1"]
            begin += ["--repeats", str(self.repeats), "--out", str(out)]
            while waiting:
                begun = (out / "owed.json").exists()
                arguments = ["run", "--resume", str(out)] if begun else [*begin, "--force"]
                stage = waiting[-1]
                runner = Runner(arguments, self.script if stage == "pool" else None)
                try:
                    hit = self._moment(stage, runner, out)
                finally:
                    runner.kill()
                if not hit:
                    break  # it was done before the moment came
                waiting.pop()
                kills += 1
                say(self._after(stage, runner))
            again = ["run", "--resume", str(out)] if (out / "owed.json").exists() else begin
            done = subprocess.run(
                [*POT, *again, "--json"], capture_output=True, timeout=600, cwd=ROOT, check=False
            )
        self._check(out, log, kills, done)

    def _moment(self, stage: str, runner: Runner, out: Path) -> bool:
        """Waits for the moment of the kill; False when the run ended before it came."""
        if stage in ("random", "pool"):
            records = len(list(out.glob("samples/*.json")))
            # Half of the random ones at any time from the start, the others among the samples.
            early = stage == "random" and self.dice.random() < 0.5

            def started() -> bool:
                return early or len(list(out.glob("samples/*.json"))) > records

            if not wait_for(started, runner):
                return False
            end = time.monotonic() + self.dice.uniform(0, 6.0 if early else 1.5)
            while time.monotonic() < end and runner.process.poll() is None:
                time.sleep(0.005)
            return runner.process.poll() is None
        if self.api is not None:
            return self._docker_stage(self.api, stage, runner)
        return self._bubblewrap_stage(stage, runner)

    def _docker_stage(self, api: APIClient, stage: str, runner: Runner) -> bool:
        """At an event of the engine about a box of this runner, as it comes."""
        wanted = "start" if stage == "paused" else stage
        number = self.dice.randint(1, 4)
        filters = {"label": f"potrunner.pid={runner.pid}", "event": wanted}
        events = api.events(decode=True, filters=filters)
        timer = threading.Timer(120, events.close)
        waiter = threading.Thread(target=lambda: (runner.process.wait(), events.close()))
        timer.start()
        waiter.start()
        hit = False
        try:
            for event in events:
                number -= 1
                if number <= 0:
                    if stage == "paused":
                        api.pause(event["id"])
                    hit = runner.process.poll() is None
                    runner.process.kill()
                    break
        finally:
            timer.cancel()
            runner.process.kill()
            waiter.join()
        return hit

    def _bubblewrap_stage(self, stage: str, runner: Runner) -> bool:
        def marked() -> list[int]:
            mine = f".{runner.pid}."
            return [pid for pid, owner in marked_processes() if mine in owner]

        if not wait_for(lambda: bool(marked()), runner, pause=0.0):
            return False
        if stage == "spawned":
            return runner.process.poll() is None
        if not wait_for(lambda: any(below(pid) for pid in marked()), runner, pause=0.0):
            return False
        if stage == "stopped":
            time.sleep(self.dice.uniform(0.0, 0.5))
            for pid in marked():
                for each in below(pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(each, signal.SIGSTOP)
        return runner.process.poll() is None

    def _after(self, stage: str, runner: Runner) -> str:
        """Waits until nothing of the killed runner is left; what is after the time is a fault."""
        figures, start = self.figures, time.monotonic()
        figures.kills += 1
        left = self._left(runner)
        figures.boxes += bool(left)
        first = left
        while left and time.monotonic() - start < 60:
            time.sleep(0.05)
            left = self._left(runner)
        seconds = time.monotonic() - start
        figures.longest = max(figures.longest, seconds)
        if left or seconds > self.gone_seconds:
            figures.faults.append(f"{stage}: after {seconds:.1f} s: {left or first}")
        workers = [p for p in runner.seen.values() if p.of_pool and p.alive]
        figures.workers_alive += bool(workers)
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)
        kinds = dict(Counter(kind for kind, _ in first))
        return f"{stage:8} left at once {kinds or 'nothing'}, nothing after {seconds:.1f} s"

    def _left(self, runner: Runner) -> list[tuple[str, str]]:
        """(kind, which) of everything of the runner that is still there."""
        mine = f".{runner.pid}."
        left = [
            ("process", p.command[:60]) for p in runner.seen.values() if p.alive and not p.of_pool
        ]
        left += [("process", str(pid)) for pid, owner in marked_processes() if mine in owner]
        left += [("folder", path.name) for path in staging_root().iterdir() if mine in path.name]
        left += [("group", g.name) for p in group_parents() for g in p.glob(f"potrunner-*{mine}*")]
        for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
            with contextlib.suppress(OSError):
                if mine in (folder / OWNER_FILE).read_text():
                    left.append(("folder", folder.name))
        if self.api is not None:
            label = {"label": f"potrunner.pid={runner.pid}"}
            found: list[dict[str, Any]] = self.api.containers(all=True, filters=label)
            left += [(f"container {box['State']}", box["Id"][:12]) for box in found]
        return left

    def _check(
        self, out: Path, log: Path, kills: int, done: subprocess.CompletedProcess[bytes]
    ) -> None:
        """No sample lost, none doubled, no reply paid twice but what was in flight at a kill."""
        figures = self.figures
        try:
            told = json.loads(done.stdout)
        except ValueError:
            figures.faults.append(f"the last resume ended with {done.returncode}: {done.stderr!r}")
            return
        found = list(RunDir.open(out).results())
        keys = {(result.id, result.repeat) for result in found}
        if not len(found) == len(keys) == told["owed"] == told["correct"] or told["failed"]:
            figures.faults.append(f"{len(found)} records, {len(keys)} different, of {told}")
        figures.samples += len(found)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        answered = Counter(line["sha256"] for line in lines if line["answered"])
        turns = sum(len(result.trajectory.turns) for result in found if result.trajectory)
        if len(answered) != turns:
            figures.faults.append(
                f"{len(answered)} different requests, {turns} turns in the records"
            )
        again = sum(times - 1 for times in answered.values())
        if again > kills * WORKERS:
            figures.faults.append(f"{again} replies paid twice at {kills} kills")
        figures.replies += len(answered)
        figures.again += again


def wait_for(check: Callable[[], bool], runner: Runner, pause: float = 0.01) -> bool:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if runner.process.poll() is not None:
            return False
        if check():
            return True
        time.sleep(pause)
    return False


@contextmanager
def endpoint(*arguments: str) -> Generator[str]:
    with subprocess.Popen(
        [*POT, "mock-endpoint", *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as server:
        try:
            assert server.stdout
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def make_items(folder: Path) -> Path:
    """Eight items that the reference programs solve."""
    line = ["build", "cwi", "--tasks", "swatch_rgb,circular_shift", "--count", "4"]
    subprocess.run(
        [*POT, *line, "--out", str(folder)], check=True, stdout=subprocess.DEVNULL, cwd=ROOT
    )
    return folder


def all_stages(wall: str, at_random: int, each: int) -> list[str]:
    return ["random"] * at_random + [*STAGES[wall]] * each


def kill_many(
    wall: str,
    stages: list[str],
    folder: Path,
    *,
    repeats: int,
    gone_seconds: float = GONE_SECONDS,
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> Figures:
    """A kill at each of the stages, in any order; `folder` is for what the runs leave."""
    items = make_items(folder / "items")
    dice = random.Random(seed)
    return Kills(wall, folder, items, repeats, dice, gone_seconds).work(stages, say)


def main() -> None:
    wall, stages = sys.argv[1], all_stages(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    with tempfile.TemporaryDirectory(prefix="pot-kills-") as folder:
        figures = kill_many(wall, stages, Path(folder), repeats=12, say=print)
    print(figures)
    sys.exit(1 if figures.faults else 0)


if __name__ == "__main__":
    main()
