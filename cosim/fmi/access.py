"""Single values of an FMU by variable: start values, parameters, text. Not for the inner loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cosim.component import FloatArray, Port
from cosim.diagnostic import FmuError, StepError
from cosim.fmi.description import Variable
from cosim.fmi.exchange import InexactValue, ValueBlock, to_elements
from cosim.fmi.instance import Instance
from cosim.fmi.ports import Binding

Check = Callable[[str, int, str], None]
Inexact = Callable[[Port, InexactValue], StepError]


class Access:
    """Reads and writes variables of one instance.

    Args:
        instance: the running instance.
        check: raises on a status that is not OK or Warning; gets call, status, detail.
        inexact: makes the error for a value that a variable cannot take.
    """

    def __init__(self, instance: Instance, check: Check, inexact: Inexact) -> None:
        self._instance = instance
        self._check = check
        self._inexact = inexact

    def read(self, variable: Variable) -> FloatArray:
        """The numbers of a variable, shape (size,)."""
        instance = self._instance
        block = ValueBlock(instance.handle, instance.getter(variable.call_type), [variable], instance.major)
        self._check(f"Get{variable.call_type}", block.call(), "")
        return block.buffer.astype(float)

    def read_text(self, variable: Variable) -> list[str | bytes]:
        """The strings of a variable."""
        status, values = self._instance.get_text(variable)
        self._check(f"Get{variable.call_type}", status, "")
        return values

    def write(self, variable: Variable, content: Sequence[Any], port: Port) -> None:
        """Write all elements of a variable; `port` is named if that fails."""
        instance = self._instance
        if variable.call_type.is_text:
            status = instance.set_text(variable, content)
        else:
            block = ValueBlock(instance.handle, instance.setter(variable.call_type), [variable], instance.major)
            values = np.array(content, dtype=float)
            try:
                block.buffer[:] = to_elements(variable.call_type, variable.port_type, values, block.buffer.dtype)
            except InexactValue as error:
                raise self._inexact(port, error) from None
            status = block.call()
        self._check(f"Set{variable.call_type}", status, f"port {port.ref}")

    def write_element(self, binding: Binding, value: Any) -> list[Any]:
        """Write one element, keeping the rest of its array; all elements as written."""
        variable = binding.variable
        content: list[Any] = [value]
        if variable.dimensions:
            content = list(self.read_text(variable) if variable.call_type.is_text else self.read(variable))
            content[binding.position] = value
        self.write(variable, content, binding.port)
        return content

    def write_start(self, values: Sequence[tuple[Binding, Any]]) -> None:
        """Write start values; the elements of one array go together.

        Raises:
            FmuError: an array has elements without a value.
        """
        by_variable: dict[str, list[tuple[Binding, Any]]] = {}
        for binding, value in values:
            by_variable.setdefault(binding.variable.name, []).append((binding, value))
        for group in by_variable.values():
            variable, port = group[0][0].variable, group[0][0].port
            content: list[Any] = list(variable.start) or [None] * variable.size
            for binding, value in group:
                content[binding.position] = value
            if any(c is None for c in content):
                raise FmuError.of(
                    "fmu-start-missing",
                    f"{port.ref} is an element of {variable.name!r}, which declares no start value: give a value for "
                    "every element",
                    port.where,
                )
            self.write(variable, content, port)
