"""What tests of servers and middleware need: a peer in memory, a `next`, a clock."""

from __future__ import annotations

from .clock import FakeClock as FakeClock
from .clock import JumpingEventLoop as JumpingEventLoop
from .clock import jumping_backend as jumping_backend
from .mocks import MockNext as MockNext
from .mocks import make_call as make_call
from .mocks import mock_next as mock_next
from .peer import InMemoryPeer as InMemoryPeer
from .peer import PeerError as PeerError
from .peer import ToolAnswer as ToolAnswer
from .peer import connect as connect
