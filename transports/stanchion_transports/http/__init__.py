"""Streamable HTTP: one endpoint for both eras.

guard       Host, Origin, Accept and Content-Type
identity    who sends a request
body        a request's body, no more of it than may be
tokens      the ids of legacy sessions, which carry what they were told
sessions    legacy sessions, as far as they must be remembered
exchange    one request's answer: JSON, or an event stream once there is something to stream
resumable   one request's answer that a client can come back to
standing    the stream of a session, and the rest of an answer that was lost
streams     what opens them
plain       one request's answer where there are no streams
cors        which pages in a browser may call
watch       notices clients that go away and streams that fall silent
endpoint    the ASGI endpoint that puts these together
documents   what the layers have for everybody, such as what /.well-known/ holds
app         the application around it, with its health routes
listener    the socket, on a port or in the file system
serving     uvicorn, signals and the drain
"""

from __future__ import annotations

from .app import HttpApp as HttpApp
from .app import app as app
from .documents import Documents as Documents
from .identity import Authenticate as Authenticate
from .serving import run as run
from .serving import serve as serve
from .sessions import Sessions as Sessions
