"""Stanchion: a production framework for Model Context Protocol servers.

General layout, from the ground up; a module imports only from those above it:

    outcome, errors           the tree of errors and the outcomes they stand for
    wire                      JSON-RPC: bytes to a message and back, no MCP
    protocol, gate            MCP as tables, and the pure functions that read them
    content, streaming        blocks for the model, in results and while a call still runs
    log_floor                 which log messages a client wants
    asks, forms               what a server may ask a client: elicitation, sampling, roots
    form_versions, sampling_messages  the same as older versions have it, and what is checked
    telling, asking           what a call tells and asks its client
    tenant_state, tenant      for whom is called, and what is kept for them
    peer, call, results       what travels: who asks, what is asked, what is answered
    ending, reading           how a call ended, and what layers measure, for those who observe
    chain, order, policies    the layers, and what is checked of them at start-up
    identification, expiry    who sends a request, and for how long that is proved
    target, catalog           what a server offers by name, with its compiled chains
    schema, returns, tool     typed functions as tools
    prompt, prompt_result     typed functions as prompts
    completion, completers    what arguments may become
    background, notifications handlers of what clients tell, beside the calls
    names, custom_method      what a server has that the protocol does not
    features                  the protocol's features, one file each
    capabilities              what a client can be asked
    pending, legacy_asks      questions to a legacy client
    sealed, round, rounds     the rounds of a modern one, and what is the same in both eras
    edge                      the one place where results and errors become the wire
    compose, mount            tools made of others, and servers inside servers
    dry_run, stand_in         calls without an effect, and what runs in a handler's place
    redaction                 secrets out of what is logged
    session, session_scope    what a legacy peer has set up, and is offered alone
    kernel, server            a message through the chain, and the server's life
    stream, plugins           for transports, and how they are found
    loading, commands, cli    the command line

This package imports none of `stanchion_middleware`, `stanchion_transports` and
`stanchion_testing`; they import only the names below.
"""

from __future__ import annotations

from .asks import Ask as Ask
from .background import Background as Background
from .bus import Bus as Bus
from .bus import Change as Change
from .bus import MemoryBus as MemoryBus
from .call import Call as Call
from .call import State as State
from .call import StateKey as StateKey
from .cancellation import is_cancellation as is_cancellation
from .chain import EVERY_REQUEST as EVERY_REQUEST
from .chain import AnyLayer as AnyLayer
from .chain import Chain as Chain
from .chain import Layer as Layer
from .chain import Link as Link
from .chain import Middleware as Middleware
from .chain import Next as Next
from .chain import layer_name as layer_name
from .client_notification import ClientNotification as ClientNotification
from .completion import Completion as Completion
from .compose import fan_out_fan_in as fan_out_fan_in
from .compose import parallel as parallel
from .compose import pipeline as pipeline
from .content import AnyBlock as AnyBlock
from .content import Audio as Audio
from .content import Block as Block
from .content import EmbeddedResource as EmbeddedResource
from .content import Image as Image
from .content import ResourceLink as ResourceLink
from .content import Text as Text
from .contents import Contents as Contents
from .contents import ResourceResult as ResourceResult
from .cost import SERVED_FROM_CACHE as SERVED_FROM_CACHE
from .cost import Cost as Cost
from .cost import cost_of as cost_of
from .debug import LayerMisuse as LayerMisuse
from .dry_run import META_DRY_RUN as META_DRY_RUN
from .edge import NO_REPLY as NO_REPLY
from .edge import Reply as Reply
from .elicitation import Elicited as Elicited
from .elicitation import ElicitForm as ElicitForm
from .elicitation import ElicitUrl as ElicitUrl
from .ending import Ending as Ending
from .ending import SessionEnding as SessionEnding
from .errors import AppNotFound as AppNotFound
from .errors import AskFailed as AskFailed
from .errors import CallError as CallError
from .errors import ChainFrozen as ChainFrozen
from .errors import ConfigurationError as ConfigurationError
from .errors import Crashed as Crashed
from .errors import Denied as Denied
from .errors import DuplicateTarget as DuplicateTarget
from .errors import Fault as Fault
from .errors import HeaderMismatch as HeaderMismatch
from .errors import InvalidArguments as InvalidArguments
from .errors import InvalidParams as InvalidParams
from .errors import InvalidPolicy as InvalidPolicy
from .errors import InvalidPrompt as InvalidPrompt
from .errors import InvalidRequest as InvalidRequest
from .errors import InvalidResource as InvalidResource
from .errors import InvalidResult as InvalidResult
from .errors import InvalidTarget as InvalidTarget
from .errors import InvalidTool as InvalidTool
from .errors import Limited as Limited
from .errors import MethodNotFound as MethodNotFound
from .errors import MissingCapability as MissingCapability
from .errors import NotSimulated as NotSimulated
from .errors import OrderViolation as OrderViolation
from .errors import OverBudget as OverBudget
from .errors import ParseError as ParseError
from .errors import ProtocolError as ProtocolError
from .errors import Refusal as Refusal
from .errors import StanchionError as StanchionError
from .errors import TimedOut as TimedOut
from .errors import ToolError as ToolError
from .errors import Unauthenticated as Unauthenticated
from .errors import Unavailable as Unavailable
from .errors import UnenforcedPolicy as UnenforcedPolicy
from .errors import UnknownTarget as UnknownTarget
from .errors import UnsupportedVersion as UnsupportedVersion
from .errors import UrlElicitationRequired as UrlElicitationRequired
from .errors import call_error_in as call_error_in
from .event_store import Event as Event
from .event_store import EventStore as EventStore
from .event_store import MemoryEventStore as MemoryEventStore
from .faults import escape_pointer as escape_pointer
from .gate import era_of_message as era_of_message
from .gate import http_status as http_status
from .identification import CREDENTIAL_FIELDS as CREDENTIAL_FIELDS
from .identification import Identifies as Identifies
from .input_needed import InputNeeded as InputNeeded
from .jsonvalue import json_depth as json_depth
from .jsonvalue import json_size as json_size
from .loading import load_server as load_server
from .log_floor import LogFloor as LogFloor
from .log_floor import LogLevel as LogLevel
from .notifications import NotificationCounts as NotificationCounts
from .order import First as First
from .order import Inside as Inside
from .order import Once as Once
from .order import Outside as Outside
from .order import Rule as Rule
from .outcome import Outcome as Outcome
from .peer import Connection as Connection
from .peer import Peer as Peer
from .pending import Pending as Pending
from .principal import Principal as Principal
from .prompt import Prompt as Prompt
from .prompt_argument import PromptArgument as PromptArgument
from .prompt_result import PromptMessage as PromptMessage
from .prompt_result import PromptResult as PromptResult
from .protocol import ASSUMED_HTTP_VERSION as ASSUMED_HTTP_VERSION
from .protocol import HEADER_PARAM_PREFIX as HEADER_PARAM_PREFIX
from .protocol import HEADER_SESSION as HEADER_SESSION
from .protocol import HEADER_VERSION as HEADER_VERSION
from .protocol import LATEST_LEGACY_VERSION as LATEST_LEGACY_VERSION
from .protocol import LATEST_MODERN_VERSION as LATEST_MODERN_VERSION
from .protocol import LEGACY_VERSIONS as LEGACY_VERSIONS
from .protocol import MODERN_VERSIONS as MODERN_VERSIONS
from .protocol import SUPPORTED_VERSIONS as SUPPORTED_VERSIONS
from .protocol import Era as Era
from .reading import Reading as Reading
from .reading import readings_of as readings_of
from .redaction import PERSONAL_DATA as PERSONAL_DATA
from .redaction import Redactor as Redactor
from .redaction import Strategy as Strategy
from .resource import Resource as Resource
from .resource_template import ResourceTemplate as ResourceTemplate
from .results import InputRequired as InputRequired
from .results import PageResult as PageResult
from .results import PlainResult as PlainResult
from .results import Result as Result
from .results import ToolResult as ToolResult
from .roots import ListRoots as ListRoots
from .roots import Root as Root
from .sampling import Sample as Sample
from .sampling import Sampled as Sampled
from .sealed import Seal as Seal
from .server import Server as Server
from .session import Session as Session
from .session_scope import SessionScope as SessionScope
from .session_scopes import OnShadow as OnShadow
from .stand_in import run_stand_in as run_stand_in
from .stream import serve_stream as serve_stream
from .streaming import META_CONTENT as META_CONTENT
from .streaming import Stream as Stream
from .target import Kind as Kind
from .target import Target as Target
from .telling import Send as Send
from .tenant import Tenant as Tenant
from .tenant_state import MAX_STATE_INTEGER as MAX_STATE_INTEGER
from .tenant_state import MAX_STATE_VALUE_BYTES as MAX_STATE_VALUE_BYTES
from .tenant_state import ScopedState as ScopedState
from .tenant_state import TenantState as TenantState
from .threads import Threads as Threads
from .tool import Tool as Tool
from .wire import Message as Message
from .wire import Notification as Notification
from .wire import Request as Request
from .wire import RequestId as RequestId
from .wire import Response as Response
from .wire import decode as decode
from .wire import encode_error as encode_error

__version__ = "0.1.0"
