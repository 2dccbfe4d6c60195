"""The ports of an FMU: names by the alias rule, everything else from the model description."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cosim.component import Causality, Direction, Port, PortRef
from cosim.diagnostic import DiagnosticLog, SourceLocation, WiringError
from cosim.fmi.alias import port_name
from cosim.fmi.description import CallType, Description, Variable

# Beyond this many, internal quantities are found by address but not listed.
_LISTED_LOCALS = 1000
_INPUTS = (Causality.INPUT, Causality.PARAMETER, Causality.STRUCTURAL_PARAMETER)


@dataclass(frozen=True, slots=True)
class Binding:
    """A port and the variable element behind it."""

    port: Port
    variable: Variable
    position: int


Key = tuple[Direction, str]


@dataclass(frozen=True, slots=True)
class _Names:
    """The port names of a description; the same for all its components.

    Attributes:
        found: direction and port name → name, variable and position of the element.
        clashes: port names that several variables want.
        hidden: internal quantities that lost their name to others.
        clocks: names of clocks.
        locals: number of internal quantities.
    """

    found: dict[Key, tuple[str, Variable, int]]
    clashes: dict[Key, tuple[str, ...]]
    hidden: tuple[str, ...]
    clocks: tuple[str, ...]
    locals: int


@functools.lru_cache(maxsize=256)
def _names_of(description: Description, explicit: tuple[tuple[str, str], ...]) -> _Names:
    """Names by the alias rule, where `explicit` (variable, port) says nothing else."""
    chosen = dict(explicit)
    found: dict[Key, tuple[str, Variable, int]] = {}
    clashes: dict[Key, tuple[str, ...]] = {}
    hidden: list[str] = []
    clocks: list[str] = []
    for variable in description.by_name.values():
        if variable.causality is Causality.INDEPENDENT:
            continue
        if variable.call_type is CallType.CLOCK:
            clocks.append(variable.name)
            continue
        direction = Direction.INPUT if variable.causality in _INPUTS else Direction.OUTPUT
        is_local = variable.causality is Causality.LOCAL
        for position, name in variable.elements():
            key = (direction, chosen.get(name) or port_name(name))
            other = found.get(key)
            if other is None or (other[1].causality is Causality.LOCAL and not is_local):
                found[key] = (name, variable, position)
            elif not is_local:
                clashes[key] = (*clashes.get(key, (other[0],)), name)
            if other is not None and (is_local or other[1].causality is Causality.LOCAL):
                hidden.append(name if is_local else other[0])
    ordered = {key: found[key] for key in sorted(found)}
    count = sum(v.causality is Causality.LOCAL for _, v, _ in found.values())
    return _Names(ordered, dict(sorted(clashes.items())), tuple(hidden), tuple(clocks), count)


class PortTable:
    """All ports of one component.

    Args:
        description: of the FMU.
        path: prim path of the component.
        fmu: the FMU as the user knows it.
        variables: port name → variable name, over the alias rule.
        where: what authored the component.
        log: gets names that clash or do not exist.
    """

    def __init__(
        self,
        description: Description,
        path: str,
        fmu: str,
        variables: Mapping[str, str],
        where: SourceLocation | None,
        log: DiagnosticLog,
    ) -> None:
        self._description = description
        self._path = path
        self._fmu = fmu
        self._where = where
        self._log = log
        self._explicit = {variable: port for port, variable in sorted(variables.items())}
        self._names = _names_of(description, tuple(self._explicit.items()))
        self._ports: dict[Key, Binding] = {}
        self._check_explicit(variables)
        self._report()
        self._lists_locals = self._names.locals <= _LISTED_LOCALS

    # ---- access

    def __iter__(self) -> Iterator[Port]:
        # Same path, keys in order: the ports are in order of their addresses.
        for key, (_, variable, _) in self._names.found.items():
            if self._lists_locals or variable.causality is not Causality.LOCAL:
                yield self._binding(key).port

    def find(self, ref: PortRef) -> Port | None:
        """The port of an address."""
        key = (ref.direction, ref.name)
        return self._binding(key).port if ref.path == self._path and key in self._names.found else None

    def binding(self, ref: PortRef) -> Binding:
        """Port and variable of an address that exists."""
        return self._binding((ref.direction, ref.name))

    def inputs_of(self, variable_name: str) -> list[PortRef]:
        """Addresses of the input ports of a variable (all elements of an array)."""
        variable = self._description.by_name.get(variable_name)
        if variable is None or variable.causality is not Causality.INPUT:
            return []
        names = (self._explicit.get(name) or port_name(name) for _, name in variable.elements())
        return [PortRef(self._path, Direction.INPUT, n) for n in names if (Direction.INPUT, n) in self._names.found]

    def check(self, port: Port) -> None:
        """Refuse a port that is not this component's.

        Raises:
            WiringError: the component has no such port.
        """
        if port.ref.path != self._path or (port.ref.direction, port.ref.name) not in self._names.found:
            raise WiringError.of("port-unknown", f"{self._path} has no port {port.ref}", port.where)

    # ---- construction

    def _binding(self, key: Key) -> Binding:
        found = self._ports.get(key)
        if found is None:
            name, variable, position = self._names.found[key]
            port = self._port(PortRef(self._path, *key), name, variable, position)
            found = self._ports[key] = Binding(port, variable, position)
        return found

    def _check_explicit(self, variables: Mapping[str, str]) -> None:
        known = self._description.by_element
        for port, variable in sorted(variables.items()):
            if variable not in known:
                near = difflib.get_close_matches(variable, known, n=4, cutoff=0.5)
                self._log.error(
                    "fmu-variable-unknown",
                    f"{self._path}: cosim:variable:{port} names {variable!r}, which {self._fmu} does not have",
                    self._where,
                    hint=f"near it: {', '.join(near)}" if near else "`cosim ports STAGE` lists every port",
                )

    def _report(self) -> None:
        for (direction, port), names in self._names.clashes.items():
            self._log.error(
                "fmu-port-clash",
                f"the variables {', '.join(repr(n) for n in names)} of {self._fmu} would all be the port "
                f"{PortRef(self._path, direction, port)}",
                self._where,
                hint=f'say which is which: uniform string cosim:variable:{port} = "{names[0]}", and another port name '
                "for each other one",
            )
        hidden, clocks = self._names.hidden, self._names.clocks
        if hidden:
            self._log.info(
                "fmu-local-hidden",
                f"{len(hidden)} internal quantities of {self._fmu} have no port, since their names would be those of "
                f"others: {_some(hidden)}",
                self._where,
                hint='name one explicitly to see it: uniform string cosim:variable:<port> = "<its name>"',
            )
        if clocks:
            self._log.warning(
                "fmu-clock-unsupported",
                f"{self._fmu} has clocks ({_some(clocks)}), which have no ports here: what they would trigger does not "
                "happen",
                self._where,
                hint="export the model without clocks, or with time-based ones that it handles inside",
            )

    def _port(self, ref: PortRef, name: str, variable: Variable, position: int) -> Port:
        start = variable.start[position] if variable.start else None
        return Port(
            ref,
            variable.causality,
            type=variable.port_type,
            variability=variable.variability,
            unit=variable.unit,
            start=start,
            minimum=variable.minimum,
            maximum=variable.maximum,
            nominal=variable.nominal,
            description=variable.description,
            relative=variable.relative,
            variable=name if name != ref.name else "",
            where=self._where or SourceLocation(layer=f"{self._fmu}/modelDescription.xml", line=variable.line),
        )


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
