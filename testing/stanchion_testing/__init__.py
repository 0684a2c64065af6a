"""What tests of servers, middleware and transports need: peers, a `next`, a clock, a contract."""

from __future__ import annotations

from .answer import PeerError as PeerError
from .answer import PromptAnswer as PromptAnswer
from .answer import ResourceAnswer as ResourceAnswer
from .answer import ToolAnswer as ToolAnswer
from .audit_contract import check_audit_sink as check_audit_sink
from .clock import FakeClock as FakeClock
from .clock import JumpingEventLoop as JumpingEventLoop
from .clock import jumping_backend as jumping_backend
from .connection import connect as connect
from .contract import TRANSPORT_CHECKS as TRANSPORT_CHECKS
from .contract import ContractBroken as ContractBroken
from .contract import check_transport as check_transport
from .cost_contract import CostStoreBroken as CostStoreBroken
from .cost_contract import check_cost_store as check_cost_store
from .dialogue import TransportPeer as TransportPeer
from .event_contract import StoreBroken as StoreBroken
from .event_contract import check_event_store as check_event_store
from .judge import Judge as Judge
from .judge import Unofficial as Unofficial
from .limit_contract import check_limit_storage as check_limit_storage
from .listening import Listening as Listening
from .mocks import MockNext as MockNext
from .mocks import make_call as make_call
from .mocks import mock_next as mock_next
from .peer import InMemoryPeer as InMemoryPeer
from .policy_contract import check_policy_adapter as check_policy_adapter
from .respondent import Answer as Answer
from .respondent import Unanswered as Unanswered
from .tenant_contract import check_tenant_state as check_tenant_state
from .tenant_contract import check_tenant_store as check_tenant_store
from .trial import OpenTransport as OpenTransport
