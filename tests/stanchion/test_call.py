"""One request on its way through the chain."""

from __future__ import annotations

import subprocess
import sys

import anyio
import orjson
import pytest

from stanchion import Call, Peer, Principal, StateKey, Unavailable
from stanchion.call import new_correlation_id
from stanchion_testing import make_call

PEER = Peer("memory", "2026-07-28", client={}, capabilities={})
REFUSAL = Unavailable("going down")


@pytest.fixture
def anyio_backend(jumping_time):
    """Let time jump: deadlines need no waiting."""
    return jumping_time


class Wire:
    """Keeps what is sent."""

    def __init__(self):
        self.frames = []

    async def __call__(self, frame):
        self.frames.append(orjson.loads(frame))


def test_state_is_kept_by_key_and_keys_never_collide():
    """Two keys of the same name are two keys; what was never set is absent."""
    one, two = StateKey[int]("count"), StateKey[int]("count")
    state = make_call().state
    state[one] = 1
    assert state[one] == 1
    assert one in state
    assert two not in state
    assert state.get(two) is None
    assert state.get(two, 7) == 7
    with pytest.raises(KeyError):
        _ = state[two]

    assert repr(one) == "<StateKey count>"


def test_what_a_layer_left_is_found_without_making_state():
    """`left` gives what `state.get` gives, before and after there is a state."""
    key, other = StateKey[str]("k"), StateKey[str]("k")
    call = make_call()
    assert call.left(key) is None
    call.state[key] = "mine"
    assert call.left(key) == "mine"
    assert call.left(other) is None


def test_state_belongs_to_one_call():
    """What one call keeps, another does not see; one call keeps it all along."""
    key = StateKey[str]("k")
    first, second = make_call(), make_call()
    first.state[key] = "mine"
    assert first.state[key] == "mine"
    assert key not in second.state


def test_a_correlation_id_is_made_once_and_is_unguessable():
    """The id stays the same for the call, differs between calls, and has 64 random bits."""
    call = make_call()
    assert call.correlation_id == call.correlation_id
    assert len(bytes.fromhex(call.correlation_id)) == 8
    assert len({make_call().correlation_id for _ in range(100)}) == 100


def test_a_correlation_id_comes_from_the_server_where_it_makes_its_own():
    """An override of the server names the call, and is asked once."""
    ids = iter(["first", "second"])
    call = Call("tools/call", PEER, new_correlation_id=lambda: next(ids))
    assert (call.correlation_id, call.correlation_id) == ("first", "first")


def test_the_tenant_is_the_principals():
    """A call acts for the tenant that its principal belongs to, if any."""
    assert Call("tools/call", PEER).tenant is None
    assert Call("tools/call", PEER, principal=Principal("a", tenant="t")).tenant.id == "t"


def test_result_meta_is_collected():
    """What layers and tools set is gathered; the last word on a key counts."""
    call = make_call()
    assert call.result_meta == {}
    call.set_meta("a", 1)
    call.set_meta("a", 2)
    assert call.result_meta == {"a": 2}
    assert make_call().result_meta == {}


async def test_remaining_counts_down_to_zero():
    """The rest until the deadline is never negative, and infinite where there is none."""
    call = make_call()
    assert call.remaining() == float("inf")
    call.deadline = anyio.current_time() + 60
    assert 0 < call.remaining() <= 60
    await anyio.sleep(120)
    assert call.remaining() == 0.0


async def test_cancel_ends_the_scope_without_a_refusal():
    """A cancelled call has nothing to answer."""
    call = make_call()
    with anyio.CancelScope() as scope:
        call.scope = scope
        call.cancel()
        await anyio.sleep_forever()

    assert call.close() is None


async def test_stop_ends_the_scope_with_a_refusal():
    """A stopped call tells what to answer in its place."""
    call = make_call()
    with anyio.CancelScope() as scope:
        call.scope = scope
        call.stop(REFUSAL)
        await anyio.sleep_forever()

    assert call.close() is REFUSAL


async def test_a_cancellation_outweighs_a_stop_in_either_order():
    """Whoever cancelled wants no answer, before the stop or after it."""
    for verbs in (("cancel", "stop"), ("stop", "cancel")):
        call = make_call()
        with anyio.CancelScope() as scope:
            call.scope = scope
            for verb in verbs:
                getattr(call, verb)(*([REFUSAL] if verb == "stop" else []))

        assert scope.cancel_called
        assert call.close() is None


def test_a_call_that_does_not_run_is_neither_cancelled_nor_stopped():
    """Outside a scope both verbs do nothing."""
    call = make_call()
    call.cancel()
    call.stop(REFUSAL)
    assert call.close() is None


async def test_nothing_is_sent_after_the_end():
    """A notification of a call that has ended goes nowhere."""
    wire = Wire()
    call = Call("tools/call", PEER, meta={"progressToken": 1}, send=wire)
    await call.notify("notifications/message", {"level": "info"})
    await call.progress(1)
    call.close()
    await call.notify("notifications/message", {"level": "info"})
    await call.progress(2)
    assert [frame["method"] for frame in wire.frames] == [
        "notifications/message",
        "notifications/progress",
    ]


async def test_progress_of_side_by_side_branches_still_rises():
    """Reports that overtake each other while the peer reads slowly go out in rising order."""
    wire, gate, writing = Wire(), anyio.Event(), anyio.Lock(fast_acquire=True)

    async def slowly(frame):
        async with writing:
            await gate.wait()
            await wire(frame)

    call = Call("tools/call", PEER, meta={"progressToken": "t"}, send=slowly)
    async with anyio.create_task_group() as group:
        for step in (1, 2, 2, 1, 3):
            group.start_soon(call.progress, step)

        await anyio.wait_all_tasks_blocked()
        gate.set()

    sent = [frame["params"]["progress"] for frame in wire.frames]
    assert sent == sorted(set(sent))
    assert sent[-1] == 3


@pytest.mark.parametrize(
    ("total", "message", "params"),
    [
        (None, None, {}),
        (10, None, {"total": 10}),
        (float("nan"), "half", {"message": "half"}),
        (float("inf"), "\ud800", {"message": "?"}),
    ],
)
async def test_progress_carries_what_json_can_hold(total, message, params):
    """A total that is not finite is left out, and a message is always text."""
    wire = Wire()
    call = Call("tools/call", PEER, meta={"progressToken": "t"}, send=wire)
    await call.progress(0.5, total, message)
    assert wire.frames == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": "t", "progress": 0.5} | params,
        }
    ]


@pytest.mark.parametrize("token", [None, True, 1.5, [], {}])
def test_only_strings_and_integers_are_tokens(token):
    """Whatever else stands under `progressToken` is no token."""
    assert make_call(meta={"progressToken": token}).progress_token is None
    assert make_call(meta={"progressToken": 0}).progress_token == 0


def test_a_call_shows_its_method_and_target():
    """For logs and debuggers."""
    assert repr(make_call(target_name="find")) == "<Call tools/call find>"


FORKED = """
import os
from stanchion.call import new_correlation_id as make
print(make(), flush=True)
child = os.fork()
if child:
    os.waitpid(child, 0)

print(*(make() for _ in range(300)), flush=True)
"""


def test_correlation_ids_are_never_the_same():
    """They are made many at once; a process that was forked makes others."""
    ids = [new_correlation_id() for _ in range(5000)]
    assert len(set(ids)) == 5000
    assert all(len(bytes.fromhex(id)) == 8 for id in ids)

    told = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, check=True).stdout
    assert len(told.split()) == len(set(told.split())) == 601
