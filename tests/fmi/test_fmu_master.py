"""FMUs on the bus of the master algorithm, next to each other."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from cosim.component import Connection, Experiment, PortRef
from cosim.diagnostic import DiagnosticLog, StepError
from cosim.fmi import FmuComponent, open_fmu
from cosim.graph import build_graph
from cosim.master import Master
from cosim.mechanism import RigidBodyModel
from cosim.plan import MasterAlgorithm, compile_plan
from cosim.system import AuthoredValue, SystemDescription
from tests.fmi.fmi_zoo import build, live


def _master(
    paths: dict[str, Path], wires: list[tuple[str, str]], values: dict[str, float | str], **options: object
) -> Master:
    log = DiagnosticLog()
    components = [FmuComponent(open_fmu(path, log=log), name, log=log) for name, path in paths.items()]
    description = SystemDescription(
        "test",
        RigidBodyModel(),
        connections=tuple(sorted((Connection(PortRef.parse(s), PortRef.parse(t)) for s, t in wires), key=str)),
        values=tuple(AuthoredValue(PortRef.parse(p), v) for p, v in sorted(values.items())),
    )
    graph = build_graph(components, description, log)
    experiment = Experiment(step=Fraction(1, 10), stop=Fraction(1))
    plan = compile_plan(graph, experiment, log, **options)  # type: ignore[arg-type]
    assert not log.errors, [str(d) for d in log.errors]
    return Master(plan, experiment, log)


def test_a_chain_of_fmi_2_and_3(tmp_path: Path) -> None:
    paths = {"/A": build(tmp_path, "2.0", name="a"), "/B": build(tmp_path, "3.0", name="b")}
    wires = [
        ("/A.outputs:y", "/B.inputs:u"),
        ("/A.outputs:y", "/B.inputs:q_2"),
        ("/A.outputs:i_out", "/B.inputs:Int8_in"),
        ("/A.outputs:s_out", "/B.inputs:s_in"),
        ("/B.outputs:y", "/A.inputs:u"),
    ]
    values = {"/A.inputs:gain": 0.5, "/B.inputs:offset": 1.0, "/A.inputs:i_in": 4.0, "/A.inputs:s_in": "hi"}
    master = _master(paths, wires, values)
    try:
        master.initialize()
        # The loop y_A = u/2, y_B = y_A + 1 settles at y_A = 1, y_B = 2 before time starts.
        assert master.get(PortRef.parse("/A.outputs:y")) == pytest.approx(1.0, abs=1e-9)
        master.run(10)
        assert master.get(PortRef.parse("/B.outputs:y")) == pytest.approx(2.0, abs=1e-9)
        assert master.get(PortRef.parse("/B.outputs:Int8_out")) == 9.0
        assert master.get(PortRef.parse("/B.outputs:r_2")) == pytest.approx(2.0, abs=1e-9)
        assert master.get(PortRef.parse("/B.outputs:imu:x_1_2")) == pytest.approx(1.0, abs=1e-9)
        assert master.get(PortRef.parse("/A.outputs:imu:x_1_2")) == pytest.approx(2.0, abs=1e-9)
        assert master._components[1].get_text()[-1] == "<<hi>>"  # type: ignore[attr-defined]
    finally:
        master.close()
    fmu = master._components[0].fmu  # type: ignore[attr-defined]
    assert live(fmu) == 0


def test_gauss_seidel_snapshot_and_bits(tmp_path: Path) -> None:
    path = build(tmp_path, "2.0")
    paths = {f"/P{k}": path for k in range(5)}
    wires = [(f"/P{k}.outputs:y", f"/P{k + 1}.inputs:u") for k in range(4)]
    traces = []
    for _ in range(2):
        master = _master(paths, wires, {"/P0.inputs:u": 0.1}, algorithm=MasterAlgorithm.GAUSS_SEIDEL)
        master.initialize()
        master.run(3)
        snapshot = master.save()
        master.run(3)
        first = master.recorder.values()[1].copy()
        master.restore(snapshot)
        master.run(3)
        assert master.recorder.values()[1].tobytes() == first.tobytes()
        traces.append(first)
        master.close()
    assert np.array_equal(*traces)


def test_a_held_parameter_and_a_failure_in_the_middle(tmp_path: Path) -> None:
    good = build(tmp_path, "2.0", name="good")
    bad = build(tmp_path, "2.0", 'FAULT_CALL="DoStep"', "FAULT_STATUS=3", name="bad")
    master = _master({"/A": good, "/B": bad}, [("/A.outputs:y", "/B.inputs:u")], {"/A.inputs:u": 1.0})
    try:
        master.initialize()
        master.run(2)
        master.hold(PortRef.parse("/A.inputs:gain"), 3.0)
        master.step()
        assert master.get(PortRef.parse("/A.outputs:y")) == 3.0
        with pytest.raises(StepError, match=r"/B \(bad.fmu\) at t = 0.5 s"):
            master.run(7)
        assert len(master.recorder) == 6
    finally:
        master.close()
    for component in master._components:
        assert live(component.fmu) == 0  # type: ignore[attr-defined]
