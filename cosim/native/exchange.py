"""The exchange loop in C, driven by the arrays of a step plan.

`exchange.c` is compiled on first use into the user's cache. It knows no component that lives in
Python: the master runs its operations in pieces around those.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.native.toolchain import compile_shared

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
# Ticks and numerators must be exact as doubles.
_EXACT = 2**53


class Outcome(enum.IntEnum):
    """What stopped the loop, in the order of `exchange.c`."""

    FINE = 0
    NOT_FINITE_INPUT = 1
    SET_FAILED = 2
    STEP_FAILED = 3
    GET_FAILED = 4
    NOT_FINITE_OUTPUT = 5


class BufferType(enum.IntEnum):
    """The type of an output buffer, in the order of `exchange.c`."""

    FLOAT64 = 0
    INT32 = 1
    BYTE = 2


@dataclass(frozen=True, slots=True)
class OutputCall:
    """Outputs of one type that one call gets.

    Attributes:
        get: address of the function.
        references: value references.
        buffer: where the values go, None for doubles that go straight to the bus, in its order.
        type: of the buffer.
        inside: positions in the buffer.
        outside: positions among the FMU's bound outputs.
    """

    get: int
    references: NDArray[np.uint32]
    buffer: NDArray[Any] | None
    type: BufferType
    inside: IntArray
    outside: IntArray


@dataclass(frozen=True, slots=True)
class HostedCalls:
    """What the loop must know of an FMU to drive it.

    Attributes:
        version: 2 or 3.
        instance: address of the instance.
        set: address of the function that sets Reals, None without inputs.
        step: address of DoStep.
        set_references: value references of the inputs.
        outputs: one per type.
        own: values of inputs that nothing drives, shape (inputs,); read at every step.
        flags: addresses of the event, terminate and early-return flags and of the time reached (FMI 3).
        keep: whatever must stay alive.
    """

    version: int
    instance: int
    set: int | None
    step: int
    set_references: NDArray[np.uint32]
    outputs: tuple[OutputCall, ...]
    own: FloatArray
    flags: tuple[int, int, int, int] | None = None
    keep: Any = None


@dataclass(frozen=True, slots=True)
class HostedPlan:
    """An FMU's place on the bus and in time.

    Attributes:
        calls: how to drive it.
        divider: base steps per communication step.
        inputs: its part of the bus.
        outputs: its part of the bus.
        last_size: length of the step that ends at the stop time [s].
    """

    calls: HostedCalls
    divider: int
    inputs: slice
    outputs: slice
    last_size: float


@dataclass(frozen=True, slots=True)
class GatherArrays:
    """A gather of the plan: see `cosim.plan.Gather`."""

    targets: IntArray
    starts: IntArray
    sources: IntArray
    factors: FloatArray
    offsets: FloatArray


@dataclass(frozen=True, slots=True)
class Clock:
    """Time is (a + tick·b)/c seconds, and `stop` from tick `ticks` on (−1: open-ended)."""

    a: int
    b: int
    c: int
    ticks: int
    stop: float

    def is_exact(self, last_tick: int) -> bool:
        """Whether every numerator up to a tick is exact as a double."""
        return max(abs(self.a) + last_tick * abs(self.b), self.c) < _EXACT


class _Block(ctypes.Structure):
    _fields_ = [
        ("get", ctypes.c_void_p),
        ("references", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("type", ctypes.c_int64),
        ("taken", ctypes.c_int64),
        ("buffer", ctypes.c_void_p),
        ("inside", ctypes.c_void_p),
        ("outside", ctypes.c_void_p),
    ]


class _Hosted(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int64),
        ("divider", ctypes.c_int64),
        ("instance", ctypes.c_void_p),
        ("set", ctypes.c_void_p),
        ("step", ctypes.c_void_p),
        ("set_references", ctypes.c_void_p),
        ("set_count", ctypes.c_int64),
        ("blocks_count", ctypes.c_int64),
        ("blocks", ctypes.c_void_p),
        ("in_at", ctypes.c_int64),
        ("in_size", ctypes.c_int64),
        ("out_at", ctypes.c_int64),
        ("out_size", ctypes.c_int64),
        ("scratch", ctypes.c_void_p),
        ("own", ctypes.c_void_p),
        ("last_size", ctypes.c_double),
        ("event", ctypes.c_void_p),
        ("terminate", ctypes.c_void_p),
        ("early", ctypes.c_void_p),
        ("reached", ctypes.c_void_p),
    ]


class _Gather(ctypes.Structure):
    _fields_ = [
        ("count", ctypes.c_int64),
        ("targets", ctypes.c_void_p),
        ("starts", ctypes.c_void_p),
        ("sources", ctypes.c_void_p),
        ("factors", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
    ]


class _Operation(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int64), ("index", ctypes.c_int64)]


class _Exchange(ctypes.Structure):
    _fields_ = [
        ("bus", ctypes.c_void_p),
        ("hosted", ctypes.c_void_p),
        ("gathers", ctypes.c_void_p),
        ("operations", ctypes.c_void_p),
        ("is_jacobi", ctypes.c_int64),
        ("a", ctypes.c_int64),
        ("b", ctypes.c_int64),
        ("c", ctypes.c_int64),
        ("ticks", ctypes.c_int64),
        ("stop", ctypes.c_double),
        ("outputs", ctypes.c_int64),
        ("columns", ctypes.c_int64),
        ("recorded", ctypes.c_void_p),
        ("held", ctypes.c_void_p),
        ("held_values", ctypes.c_void_p),
        ("held_count", ctypes.c_int64),
        ("failed_operation", ctypes.c_int64),
        ("failed_index", ctypes.c_int64),
        ("failed_status", ctypes.c_int64),
        ("failed_block", ctypes.c_int64),
    ]


def address_of(function: Any) -> int:
    """Of a C function."""
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


@cache
def exchange_library() -> ctypes.CDLL:
    """The compiled loop.

    Raises:
        CosimError: there is no compiler.
    """
    with as_file(files("cosim.native").joinpath("exchange.c")) as source:
        library = ctypes.CDLL(str(compile_shared([source], name="cosim_exchange")))
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    library.exchange_run.argtypes = [pointer, number, number, number]
    library.exchange_finish.argtypes = [pointer, number, pointer, pointer]
    library.exchange_ticks.argtypes = [pointer, number, number, number, pointer, pointer, pointer]
    library.exchange_ticks.restype = number
    return library


GATHER, HOSTED = 0, 1


class Exchange:
    """One run's loop.

    Args:
        bus: all numbers, float64; used in place.
        hosted: FMUs that the loop drives.
        gathers: of the plan.
        operations: (GATHER or HOSTED, index), in order of execution.
        is_jacobi: whether inputs are latched at the beginning of a component's period.
        clock: the time base.
        outputs: number of leading bus entries that must stay finite.
        recorded: bus indices of a row.
    """

    def __init__(
        self,
        bus: FloatArray,
        hosted: Sequence[HostedPlan],
        gathers: Sequence[GatherArrays],
        operations: Sequence[tuple[int, int]],
        *,
        is_jacobi: bool,
        clock: Clock,
        outputs: int,
        recorded: IntArray,
    ) -> None:
        library = exchange_library()
        self._kept: list[Any] = [bus, hosted]
        self._hosted = (_Hosted * max(1, len(hosted)))(*(self._host(h) for h in hosted))
        self._gathers = (_Gather * max(1, len(gathers)))(*(self._gather(g) for g in gathers))
        self._operations = (_Operation * max(1, len(operations)))(*(_Operation(*o) for o in operations))
        self._count = len(operations)
        recorded = self._keep(np.ascontiguousarray(recorded, dtype=np.int64))
        self._context = _Exchange(
            bus=bus.ctypes.data,
            hosted=ctypes.addressof(self._hosted),
            gathers=ctypes.addressof(self._gathers),
            operations=ctypes.addressof(self._operations),
            is_jacobi=int(is_jacobi),
            a=clock.a,
            b=clock.b,
            c=clock.c,
            ticks=clock.ticks,
            stop=clock.stop,
            outputs=outputs,
            columns=len(recorded),
            recorded=recorded.ctypes.data,
        )
        self._address = ctypes.addressof(self._context)
        self._run, self._finish, self._ticks = library.exchange_run, library.exchange_finish, library.exchange_ticks
        self._what = ctypes.c_int()
        self.hold({})

    def run(self, first: int, last: int, tick: int) -> int:
        """Operations `first` to `last` of a tick; an `Outcome`."""
        return int(self._run(self._address, first, last, tick))

    def finish(self, tick: int, time: int, row: int) -> int:
        """Guard the outputs and record a row, given by addresses; an `Outcome`."""
        return int(self._finish(self._address, tick, time, row))

    def ticks(self, tick: int, count: int, times: int, rows: int) -> tuple[int, int]:
        """Whole ticks; how many were done, and the `Outcome` of the next."""
        done = self._ticks(self._address, self._count, tick, count, times, rows, ctypes.byref(self._what))
        return int(done), int(self._what.value)

    def hold(self, values: dict[int, float]) -> None:
        """Bus entries that keep a value over what is gathered."""
        self._held = np.array(sorted(values), dtype=np.int64)
        self._held_values = np.array([values[k] for k in sorted(values)], dtype=np.float64)
        self._context.held = self._held.ctypes.data
        self._context.held_values = self._held_values.ctypes.data
        self._context.held_count = len(values)

    @property
    def failure(self) -> tuple[int, int, int]:
        """Index in its table, status, and output block of the call that failed."""
        return self._context.failed_index, self._context.failed_status, self._context.failed_block

    # ---- tables

    def _keep(self, array: Any) -> Any:
        self._kept.append(array)
        return array

    def _host(self, plan: HostedPlan) -> _Hosted:
        calls = plan.calls
        n_in, n_out = plan.inputs.stop - plan.inputs.start, plan.outputs.stop - plan.outputs.start
        scratch = self._keep(np.zeros(max(1, n_in)))
        event, terminate, early, reached = calls.flags or (None, None, None, None)
        blocks = self._keep((_Block * max(1, len(calls.outputs)))(*(self._block(b) for b in calls.outputs)))
        return _Hosted(
            version=calls.version,
            divider=plan.divider,
            instance=calls.instance,
            set=calls.set,
            step=calls.step,
            set_references=calls.set_references.ctypes.data,
            set_count=len(calls.set_references),
            blocks_count=len(calls.outputs),
            blocks=ctypes.addressof(blocks),
            in_at=plan.inputs.start,
            in_size=n_in,
            out_at=plan.outputs.start,
            out_size=n_out,
            scratch=scratch.ctypes.data,
            own=calls.own.ctypes.data,
            last_size=plan.last_size,
            event=event,
            terminate=terminate,
            early=early,
            reached=reached,
        )

    def _block(self, call: OutputCall) -> _Block:
        inside, outside = (self._keep(np.ascontiguousarray(a, dtype=np.int64)) for a in (call.inside, call.outside))
        self._keep(call)
        return _Block(
            get=call.get,
            references=call.references.ctypes.data,
            count=len(call.references),
            size=len(call.outside) if call.buffer is None else call.buffer.size,
            type=int(call.type),
            taken=len(call.outside),
            buffer=None if call.buffer is None else call.buffer.ctypes.data,
            inside=inside.ctypes.data,
            outside=outside.ctypes.data,
        )

    def _gather(self, arrays: GatherArrays) -> _Gather:
        targets, starts, sources = (
            self._keep(np.ascontiguousarray(a, dtype=np.int64)) for a in (arrays.targets, arrays.starts, arrays.sources)
        )
        factors, offsets = (
            self._keep(np.ascontiguousarray(a, dtype=np.float64)) for a in (arrays.factors, arrays.offsets)
        )
        return _Gather(
            count=len(targets),
            targets=targets.ctypes.data,
            starts=starts.ctypes.data,
            sources=sources.ctypes.data,
            factors=factors.ctypes.data,
            offsets=offsets.ctypes.data,
        )
