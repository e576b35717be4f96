"""The agent: ask, read, run, show, until there is an answer or a limit.

`run_sample` is the whole of it. Faults that are not the model's (endpoint, host, input picture)
leave it as exceptions; everything the model does, also to its box, becomes a `Trajectory`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol

from agent import prompts
from agent.budget import MAX_DEATHS, Budget, fit_pictures
from agent.config import RunConfig
from agent.dialects import cut_in_reasoning
from agent.messages import (
    Action,
    Answer,
    Dialect,
    Image,
    Malformed,
    Message,
    Model,
    Part,
    Reply,
    Request,
    Run,
    Text,
)
from agent.models.errors import ContextFull
from agent.observe import observe
from agent.pictures import Prepared, prepare
from agent.trajectory import Stop, Trajectory, Turn
from benchmarks.sample import Sample
from sandbox.outputs import Execution
from sandbox.spec import InputFile

MAX_MALFORMED = 3
"""Unreadable replies in a row after which a sample ends."""
NO_SANDBOX = "Code cannot be run here. Look at the picture and give <answer>…</answer>."


class Box(Protocol):
    data_dir: str

    async def run(self, code: str, seconds: float | None = None) -> Execution: ...


OpenBox = Callable[[Sequence[InputFile]], AbstractAsyncContextManager[Box]]
Watch = Callable[[Reply | Execution], None]
"""Is told of each reply and each execution as it happens, for whoever looks on."""
Results = list[tuple[Action, tuple[Part, ...]]]


async def run_sample(
    sample: Sample,
    model: Model,
    open_box: OpenBox,
    dialect: Dialect,
    config: RunConfig,
    watch: Watch = lambda _: None,
    repeat: int = 0,
) -> Trajectory:
    """Takes one sample through the loop.

    Raises:
        InputProblem: a picture of the sample cannot be used.
        ModelError: the endpoint cannot be reached or refuses.
        SandboxError: the host cannot make or keep a box.
    """
    pictures = await asyncio.to_thread(
        lambda: [prepare(p, config.max_pixels) for p in sample.pictures]
    )
    async with _box(open_box, pictures, config) as box:
        data_dir = box.data_dir if box else ""
        prompt = (
            prompts.system(config, dialect, data_dir),
            prompts.question(sample.prompt, pictures, config, data_dir),
        )
        history, turns, budget = list(prompt), list[Turn](), Budget(config)
        answer: str | None = None
        stop: Stop | None = None
        while stop is None:
            request = Request(
                messages=fit_pictures(history, config),
                tools=dialect.tools if box else (),
                stop=dialect.stop if box else (),
                max_tokens=budget.max_tokens,
                sample_id=sample.id,
                repeat=repeat,
                turn=len(turns) + 1,
            )
            try:
                reply = await model.reply(request)
            except ContextFull:
                stop = "context_full"
                break
            watch(reply)
            budget.count_reply(reply)
            actions = dialect.read(reply) if box else _only_answers(dialect.read(reply))
            answer = next((a.text for a in actions if isinstance(a, Answer)), answer)
            stop = _stop(reply, actions, turns, budget, request.stop)
            executions: list[Execution] = []
            sent = [dialect.assistant(reply)]
            if stop is None:
                results, executions = await _carry_out(actions, box, budget, len(turns) + 1, watch)
                left = config.max_turns - len(turns) - 1
                sent += _ending(dialect.observation(tuple(results)), prompts.replies_left(left))
                stop = _exhausted(budget)
            turns.append(Turn(reply, actions, tuple(executions), tuple(sent)))
            history += sent
    return Trajectory(prompt, tuple(turns), stop, answer)


def _box(
    open_box: OpenBox, pictures: list[Prepared], config: RunConfig
) -> AbstractAsyncContextManager[Box | None]:
    if config.arm == "look":
        return nullcontext(None)
    return open_box([file for picture in pictures for file in picture.files])


def _only_answers(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Without a sandbox code is not an action; the model is told so once per reply."""
    if any(isinstance(action, Answer) for action in actions):
        return tuple(action for action in actions if isinstance(action, Answer))
    return (Malformed(NO_SANDBOX, next((getattr(a, "call_id", None) for a in actions), None)),)


def _stop(
    reply: Reply,
    actions: tuple[Action, ...],
    turns: Sequence[Turn],
    budget: Budget,
    stop_strings: tuple[str, ...],
) -> Stop | None:
    """Whether this reply is the last, before any of its code is run.

    Where a stop string of ours may have ended it in the thinking, the model is asked to go on.
    """
    runs = any(isinstance(action, Run) for action in actions)
    answers = any(isinstance(action, Answer) for action in actions)
    if answers and not runs:
        return "answered"
    if (reply.refusal or reply.finish_reason == "content_filter") and not runs:
        return "refused"
    if len(turns) + 1 >= budget.config.max_turns:
        return "answered" if answers else "max_turns"
    if cut_in_reasoning(reply) and not (stop_strings and reply.finish_reason == "stop"):
        return "cut_in_reasoning"
    if not budget.tokens_left:
        return "token_limit"
    if not budget.seconds_left:
        return "time_limit"
    recent = [turn.actions for turn in turns[len(turns) - MAX_MALFORMED + 1 :]] + [actions]
    if len(recent) == MAX_MALFORMED and all(_unreadable(a) for a in recent):
        return "malformed"
    return None


def _unreadable(actions: tuple[Action, ...]) -> bool:
    return all(isinstance(action, Malformed) for action in actions)


async def _carry_out(
    actions: tuple[Action, ...],
    box: Box | None,
    budget: Budget,
    turn: int,
    watch: Watch,
) -> tuple[Results, list[Execution]]:
    """Runs the code of one reply in order; each action is answered by what it gave."""
    results: Results = []
    executions: list[Execution] = []
    pictures = 1
    for action in actions:
        if isinstance(action, Malformed):
            results.append((action, (Text(action.hint),)))
        elif isinstance(action, Run) and box is not None:
            if not budget.seconds_left or budget.deaths >= MAX_DEATHS:
                results.append((action, (Text("[not run: the limit of this task is reached]"),)))
                continue
            execution = await box.run(action.code, budget.cell_seconds)
            budget.count_cell(execution)
            executions.append(execution)
            watch(execution)
            parts = await asyncio.to_thread(observe, execution, budget.config, turn, pictures)
            pictures += sum(isinstance(part, Image) for part in parts)
            results.append((action, parts))
    return results, executions


def _exhausted(budget: Budget) -> Stop | None:
    """Whether the cells of this turn used up what the sample had."""
    if budget.deaths >= MAX_DEATHS:
        return "box_exhausted"
    return None if budget.seconds_left else "time_limit"


def _ending(messages: tuple[Message, ...], line: str) -> list[Message]:
    """The observation with one more line at its very end."""
    last = messages[-1]
    return [
        *messages[:-1],
        Message(last.role, (*last.parts, Text(line)), last.tool_calls, last.tool_call_id),
    ]
