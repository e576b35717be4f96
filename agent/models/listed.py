"""`Listed`: a model that gives the replies it was handed, in order: for demonstrations, tests."""

from __future__ import annotations

from collections.abc import Iterable

from agent.messages import Reply, Request
from agent.models.errors import ModelUnavailable


class Listed:
    """Keeps every request it was sent in `requests`."""

    name = "listed"

    def __init__(self, replies: Iterable[Reply | str]) -> None:
        self._replies = [
            Reply(r, finish_reason="stop") if isinstance(r, str) else r for r in replies
        ]
        self.requests: list[Request] = []

    async def reply(self, request: Request) -> Reply:
        """The next reply of the list.

        Raises:
            ModelUnavailable: the list is used up.
        """
        self.requests.append(request)
        if len(self.requests) > len(self._replies):
            raise ModelUnavailable(f"expected at most {len(self._replies)} requests, got one more")
        return self._replies[len(self.requests) - 1]
