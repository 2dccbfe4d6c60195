"""The ports of an FMU: names by the alias rule, everything else from the model description."""

from __future__ import annotations

import difflib
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
        self._names: dict[PortRef, tuple[str, Variable, int]] = {}
        self._ports: dict[PortRef, Binding] = {}
        self._clashes: dict[PortRef, list[str]] = {}
        self._check_explicit(variables)
        self._collect()
        local = sum(v.causality is Causality.LOCAL for _, v, _ in self._names.values())
        self._lists_locals = local <= _LISTED_LOCALS

    # ---- access

    def __iter__(self) -> Iterator[Port]:
        for ref in sorted(self._names):
            if self._lists_locals or self._names[ref][1].causality is not Causality.LOCAL:
                yield self.binding(ref).port

    def find(self, ref: PortRef) -> Port | None:
        """The port of an address."""
        return self.binding(ref).port if ref in self._names else None

    def binding(self, ref: PortRef) -> Binding:
        """Port and variable of an address that exists."""
        found = self._ports.get(ref)
        if found is None:
            name, variable, position = self._names[ref]
            found = self._ports[ref] = Binding(self._port(ref, name, variable, position), variable, position)
        return found

    def inputs_of(self, variable_name: str) -> list[PortRef]:
        """Addresses of the input ports of a variable (all elements of an array)."""
        variable = self._description.by_name.get(variable_name)
        if variable is None or variable.causality is not Causality.INPUT:
            return []
        refs = (PortRef(self._path, Direction.INPUT, self._name(name)) for _, name in variable.elements())
        return [ref for ref in refs if ref in self._names]

    # ---- construction

    def _name(self, variable: str) -> str:
        return self._explicit.get(variable) or port_name(variable)

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

    def _collect(self) -> None:
        clocks: list[str] = []
        hidden: list[str] = []
        for variable in self._description.by_name.values():
            if variable.causality is Causality.INDEPENDENT:
                continue
            if variable.call_type is CallType.CLOCK:
                clocks.append(variable.name)
                continue
            direction = Direction.INPUT if variable.causality in _INPUTS else Direction.OUTPUT
            for position, name in variable.elements():
                ref = PortRef(self._path, direction, self._name(name))
                other = self._names.get(ref)
                is_local = variable.causality is Causality.LOCAL
                if other is None or (other[1].causality is Causality.LOCAL and not is_local):
                    self._names[ref] = (name, variable, position)
                elif not is_local:
                    self._clashes.setdefault(ref, [other[0]]).append(name)
                if other is not None and (is_local or other[1].causality is Causality.LOCAL):
                    hidden.append(name if is_local else other[0])
        for ref, names in sorted(self._clashes.items()):
            self._log.error(
                "fmu-port-clash",
                f"the variables {', '.join(repr(n) for n in names)} of {self._fmu} would all be the port {ref}",
                self._where,
                hint=f'say which is which: uniform string cosim:variable:{ref.name} = "{names[0]}", '
                "and another port name for each other one",
            )
        if hidden:
            self._log.info(
                "fmu-local-hidden",
                f"{len(hidden)} internal quantities of {self._fmu} have no port, since their names would be those of "
                f"others: {', '.join(hidden[:6])}{' …' if len(hidden) > 6 else ''}",
                self._where,
                hint='name one explicitly to see it: uniform string cosim:variable:<port> = "<its name>"',
            )
        if clocks:
            self._log.warning(
                "fmu-clock-unsupported",
                f"{self._fmu} has clocks ({', '.join(clocks[:6])}{' …' if len(clocks) > 6 else ''}), which have no "
                "ports here: what they would trigger does not happen",
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

    def check_type(self, port: Port) -> None:
        """Refuse a port that is not this component's.

        Raises:
            WiringError: the component has no such port.
        """
        if port.ref not in self._names:
            raise WiringError.of("port-unknown", f"{self._path} has no port {port.ref}", port.where)
