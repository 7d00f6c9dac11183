"""Progress in a page that is open: server-sent events, one whenever something has changed, until the work is over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

_LOOKS_EVERY = 0.5
_QUIET = 15.0  # seconds after which an empty line says that the server is still there


def told_until(request: Request, look: Callable[[], dict[str, Any]], going_on: set[str]) -> StreamingResponse:
    """A stream of what `look` gives, as long as its state is one of those that go on; the last one ends it."""

    async def stream() -> AsyncIterator[str]:
        last, waited = None, 0.0
        while not await request.is_disconnected():
            found = await run_in_threadpool(look)
            if found != last:
                last, waited = found, 0.0
                yield f"data: {json.dumps(_public(found))}\n\n"
            if found.get("state") not in going_on:
                return
            await asyncio.sleep(_LOOKS_EVERY)
            waited += _LOOKS_EVERY
            if waited >= _QUIET:
                waited = 0.0
                yield ": still there\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


def _public(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found.get(name) for name in ("state", "title", "done", "total", "said")}
