"""`Listed`: a model that gives the replies it was handed, in order: for demonstrations, tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agent.messages import Reply, Request
from agent.models.errors import ModelUnavailable

Said = Reply | str | Callable[[Request], Reply | str]
"""A reply, its text alone, or a function that makes either from the request."""


class Listed:
    """Keeps every request it was sent in `requests`."""

    name = "listed"

    def __init__(self, replies: Iterable[Said]) -> None:
        self._replies = list(replies)
        self.requests: list[Request] = []

    async def reply(self, request: Request) -> Reply:
        """The next reply of the list.

        Raises:
            ModelUnavailable: the list is used up.
        """
        self.requests.append(request)
        if len(self.requests) > len(self._replies):
            raise ModelUnavailable(f"expected at most {len(self._replies)} requests, got one more")
        said = self._replies[len(self.requests) - 1]
        if callable(said):
            said = said(request)
        return Reply(said, finish_reason="stop") if isinstance(said, str) else said
