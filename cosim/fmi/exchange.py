"""Move numbers between the bus and an FMU: one C call per type, on arrays prepared once.

FMI moves variables by value reference, each type by its own function; an FMI 3 array
moves as a whole. A `ValueBlock` holds the references and a buffer for one type and calls
the function on them. `InputBlock` and `OutputBlock` put bus values into that buffer and
take them out, with the casts of the types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from ctypes import c_size_t, c_void_p
from functools import partial
from typing import Any

import numpy as np

from cosim.component import FloatArray, IndexArray, PortType
from cosim.fmi.description import CallType, Variable
from cosim.native.exchange import BufferType, OutputCall, address_of

_EXACT = 2.0**53

DTYPES: dict[CallType, Any] = {
    CallType.REAL: np.float64,
    CallType.INTEGER: np.int32,
    CallType.FLOAT64: np.float64,
    CallType.FLOAT32: np.float32,
    CallType.INT8: np.int8,
    CallType.UINT8: np.uint8,
    CallType.INT16: np.int16,
    CallType.UINT16: np.uint16,
    CallType.INT32: np.int32,
    CallType.UINT32: np.uint32,
    CallType.INT64: np.int64,
    CallType.UINT64: np.uint64,
}


def numpy_type(call_type: CallType, major: int) -> Any:
    """The element type of the C array; a Boolean is an int in FMI 2 and one byte in FMI 3."""
    if call_type is CallType.BOOLEAN:
        return np.int32 if major == 2 else np.uint8
    return DTYPES[call_type]


class InexactValue(Exception):
    """A bus value that a variable cannot take."""

    def __init__(self, position: int, value: float, what: str) -> None:
        super().__init__(what)
        self.position = position
        self.value = value
        self.what = what


class ValueBlock:
    """The variables of one type that are moved by one call.

    Args:
        handle: the FMU instance.
        function: the C get or set function of the type.
        variables: distinct variables of one type.
        major: FMI version, 2 or 3.
    """

    def __init__(self, handle: c_void_p, function: Any, variables: Sequence[Variable], major: int) -> None:
        self.variables = tuple(variables)
        self.call_type = self.variables[0].call_type
        self.references = np.array([v.reference for v in variables], dtype=np.uint32)
        sizes = [v.size for v in variables]
        self.offsets = dict(zip((v.name for v in variables), np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
        self.buffer = np.zeros(sum(sizes), dtype=numpy_type(self.call_type, major))
        arguments: list[Any] = [
            handle,
            c_void_p(self.references.ctypes.data),
            c_size_t(len(variables)),
            c_void_p(self.buffer.ctypes.data),
        ]
        if major == 3:
            arguments.append(c_size_t(self.buffer.size))
        self.call: Callable[[], int] = partial(function, *arguments)


Element = tuple[Variable, int]


def blocks(
    handle: c_void_p, function_of: Callable[[CallType], Any], elements: Iterable[Element], major: int
) -> list[tuple[ValueBlock, IndexArray, IndexArray]]:
    """Group elements by type.

    Returns:
        Per type the block, the positions of its elements in `elements`, and in its buffer.
    """
    by_type: dict[CallType, list[tuple[int, Variable, int]]] = {}
    for position, (variable, element) in enumerate(elements):
        by_type.setdefault(variable.call_type, []).append((position, variable, element))
    found = []
    for call_type, members in by_type.items():
        distinct = list({v.name: v for _, v, _ in members}.values())
        block = ValueBlock(handle, function_of(call_type), distinct, major)
        outside = np.array([p for p, _, _ in members], dtype=np.intp)
        inside = np.array([block.offsets[v.name] + e for _, v, e in members], dtype=np.intp)
        found.append((block, outside, inside))
    return found


def to_elements(call_type: CallType, port_type: PortType, values: FloatArray, dtype: Any) -> Any:
    """Bus values as values of a variable's type.

    Raises:
        InexactValue: a value is no whole number, or out of the type's range.
    """
    if call_type is CallType.BOOLEAN:
        return values > 0.5
    if port_type is PortType.REAL:
        return values
    rounded = np.rint(values)
    if not np.array_equal(rounded, values):
        at = int(np.flatnonzero(rounded != values)[0])
        raise InexactValue(at, float(values[at]), f"is no whole number, and the variable is {call_type}")
    limits = np.iinfo(dtype)
    # float(2^63 - 1) rounds up to 2^63, which does not fit: hence the strict comparison.
    beyond = (values < float(limits.min)) | (values >= float(limits.max) + 1.0)
    if beyond.any():
        at = int(np.flatnonzero(beyond)[0])
        raise InexactValue(at, float(values[at]), f"is out of the range of {call_type}")
    return rounded.astype(dtype)


class InputBlock:
    """Writes a part of the bus values to the FMU.

    Attributes:
        outside: positions among the bound inputs.
    """

    def __init__(self, block: ValueBlock, outside: IndexArray, inside: IndexArray, n_bound: int) -> None:
        self.block = block
        self.outside = outside
        self.inside = inside
        self.call = block.call
        self._is_real = block.buffer.dtype == np.float64
        identity = np.arange(n_bound, dtype=np.intp)
        self.is_whole = bool(
            self._is_real
            and block.buffer.size == n_bound
            and np.array_equal(outside, identity)
            and np.array_equal(inside, identity)
        )
        self._taken = np.empty(len(outside))
        self._is_packed = np.array_equal(inside, np.arange(block.buffer.size))

    def write(self, values: FloatArray) -> int:
        """Put the values into the buffer and call; the FMI status."""
        buffer = self.block.buffer
        if self.is_whole:
            buffer[:] = values
        elif self._is_real and self._is_packed:
            values.take(self.outside, out=buffer, mode="clip")
        else:
            values.take(self.outside, out=self._taken, mode="clip")
            first = self.block.variables[0]
            buffer[self.inside] = to_elements(first.call_type, first.port_type, self._taken, buffer.dtype)
        return self.call()


class OutputBlock:
    """Reads a part of the bus values from the FMU."""

    def __init__(self, block: ValueBlock, outside: IndexArray, inside: IndexArray, n_bound: int) -> None:
        self.block = block
        self.outside = outside
        self.inside = inside
        self.call = block.call
        identity = np.arange(n_bound, dtype=np.intp)
        self.is_whole = bool(
            block.buffer.dtype == np.float64
            and block.buffer.size == n_bound
            and np.array_equal(outside, identity)
            and np.array_equal(inside, identity)
        )
        self._is_wide = block.call_type in (CallType.INT64, CallType.UINT64)
        self.is_float = block.buffer.dtype.kind == "f"

    def native_call(self, getter: Callable[[CallType], Any]) -> OutputCall | None:
        """How the loop in C gets these outputs; None for a type that it does not know."""
        block, types = self.block, {"f8": BufferType.FLOAT64, "i4": BufferType.INT32, "u1": BufferType.BYTE}
        kind = types.get(block.buffer.dtype.str[1:])
        if kind is None:
            return None
        return OutputCall(
            address_of(getter(block.call_type)),
            block.references,
            None if self.is_whole else block.buffer,
            kind,
            self.inside,
            self.outside,
        )

    def read(self, values: FloatArray) -> None:
        """Put what was read into the bus values.

        Raises:
            InexactValue: an integer is too large for a float64 to hold exactly.
        """
        buffer = self.block.buffer
        if self.is_whole:
            values[:] = buffer
        else:
            values[self.outside] = buffer[self.inside]
        if self._is_wide:
            taken = values[self.outside]
            if np.any(np.abs(taken) > _EXACT):
                at = int(np.flatnonzero(np.abs(taken) > _EXACT)[0])
                raise InexactValue(at, float(taken[at]), "is too large to be carried exactly (beyond 2^53)")
