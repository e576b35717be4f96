"""The mock endpoint: an OpenAI-compatible server over real HTTP, for tests, demos and measurements.

It serves reference programs, gold answers or a scenario of replies and faults, in any dialect, and
logs one line a request. `serve` runs it inside a program, `pot mock-endpoint` as a process.
"""

from agent.endpoint.app import Log, Settings, make_app
from agent.endpoint.server import serve

__all__ = ["Log", "Settings", "make_app", "serve"]
