"""What runs in the place of a handler, with all that a handler has: threads, and questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .chain import Next
from .results import Result
from .threads import Threads

if TYPE_CHECKING:
    from .call import Call
    from .tool import Tool


async def run_stand_in(tool: Tool, call: Call) -> Result:
    """Run the handler of *tool* for *call* in the place of the rest of the chain; for layers.

    No layer runs. A sync handler runs in the server's worker threads, and one that asks the
    client is answered as in the chain: directly, or in rounds that give an `InputRequired`.
    *call* keeps its own target.

    Raises:
        InvalidArguments: The arguments do not fit the tool.
        InvalidResult: What the handler returned cannot be sent, or is not what the tool returns.
        Unavailable: The handler is sync and no worker thread is free.
        Exception: What the handler raised.
    """
    scopes, rounds = call._scopes, call._rounds  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] # the kernel's, as this is
    threads = Threads(1) if scopes is None else scopes.threads

    async def run(next: Next) -> Result:
        return await tool.run(next.call, threads)

    return await (run if rounds is None else rounds.around(run))(Next(call, None))
