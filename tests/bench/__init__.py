"""The benchmark: what a tool call costs here, in a bare echo, and in the peers.

`python -m tests.bench` runs all of it and prints tables; nothing here is timed under pytest.

    contestants    the servers: a bare echo, Stanchion, the official SDK, FastMCP
    loaded         servers with long lists, streams and listens, and their echoes
    serve          one contestant in a process of its own
    process        starting it, its CPU clock, stopping it
    messages       the requests as bytes, and the check of each answer
    load           a bounded keep-alive load over raw sockets
    engine         the rounds over HTTP
    inside         what is measured in one process: layers, `Server.handle`, the gate
    deciding       the six layers that decide about a call
    observing      what traces and metrics add to a call
    recording      what the log and the audit add to a call, and what a trail can take
    round_trips    how often a call waits for Redis
    imports        what importing costs
    lists          a list of 1,000 tools
    streamed       a result in 100 chunks
    listens        500 open subscriptions/listen
    sessions       10,000 idle legacy sessions
    report         figures, budgets, JSON
    tables         the figures as tables
"""
