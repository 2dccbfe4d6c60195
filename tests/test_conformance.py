"""LunCoSim's sample stages as they are, against the figures of their authors (ports.md, section 5)."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cosim

pytestmark = pytest.mark.conformance


@pytest.fixture
def stage(lunco):
    """A loaded sample stage."""
    return lambda name: cosim.load(lunco / "scenes" / "tests" / f"{name}.usda", asset_roots={"lunco": lunco})


def test_joint_welds_and_the_witness_falls(stage):
    r = cosim.simulate(stage("joint"), stop=4)
    a, b = (np.array([r[f"/SandboxScene/Cube{n}.position_{c}"] for c in "xyz"]) for n in "AB")
    assert b[1, -1] > 4.5
    assert np.linalg.norm(a - b, axis=0) == pytest.approx(4.0, rel=0.05)
    free = r["/SandboxScene/FreeCube.position_y"]
    assert free[0] - free.min() >= 1.0


def test_revolute_motor_rests_and_follows_a_command(stage):
    with cosim.open(stage("revolute_motor")) as sim:
        sim.step(480)
        assert abs(sim.get("/SandboxScene/Hinge.outputs:angle")) < 0.1
        sim.set("/SandboxScene/Hinge.inputs:angle", 1.2)
        sim.step(8 * 240)
        assert sim.get("/SandboxScene/Hinge.outputs:angle") == pytest.approx(1.2, rel=0.1)


def test_prismatic_drive_holds_its_target_and_follows_a_command(stage):
    with cosim.open(stage("prismatic_drive")) as sim:
        sim.step(5 * 240)
        assert sim.get("/SandboxScene/Lift.outputs:displacement") == pytest.approx(-1.5, rel=0.1)
        sim.set("/SandboxScene/Lift.inputs:displacement", -0.5)
        sim.step(5 * 240)
        assert sim.get("/SandboxScene/Lift.outputs:displacement") == pytest.approx(-0.5, rel=0.1)
        sim.release("/SandboxScene/Lift.inputs:displacement")
        sim.step(5 * 240)
        assert sim.get("/SandboxScene/Lift.outputs:displacement") == pytest.approx(-1.5, rel=0.1)


def test_sensor_reads_range_contact_and_specific_force(stage):
    r = cosim.simulate(stage("sensor"), stop=3)
    box = "/SandboxScene/Box"
    assert r[f"{box}/Altimeter/Model.outputs:range_m"][-1] == pytest.approx(0.8, abs=1e-3)
    assert r[f"{box}.contact"][-1] == 1.0
    assert r[f"{box}.contact_force"][-1] == pytest.approx(162.0, rel=1e-3)
    assert r["/SandboxScene/Box50.contact_force"][-1] == pytest.approx(81.0, rel=1e-3)
    imu = next(n.partition(".")[0] for n in r.names if n.endswith("specific_force_y"))
    assert [r[f"{imu}.specific_force_{a}"][-1] for a in "xyz"] == pytest.approx([0, 1.62, 0], abs=1e-3)


def test_sun_tracker_follows_the_sun(stage):
    tower = "/SunTrackerTest/SolarTower"
    with cosim.open(stage("sun_tracker")) as sim:
        sim.step(5 * 240)
        yaw = sim.get(f"{tower}/Controller.outputs:yaw")
        assert abs(math.remainder(sim.get(f"{tower}/Hinge.outputs:angle") - yaw, math.tau)) < 0.15
        # Turn the sun by 1 rad about the vertical.
        probe = [sim.get(f"{tower}/Environment.outputs:sun_mount_{a}") for a in "xyz"]
        c, s = math.cos(1.0), math.sin(1.0)
        turned = (c * probe[0] + s * probe[2], probe[1], -s * probe[0] + c * probe[2])
        for axis, value in zip("xyz", turned, strict=True):
            sim.set(f"/SunTrackerTest/Sun.inputs:direction_{axis}", value)
        sim.step(8 * 240)
        after = sim.get(f"{tower}/Controller.outputs:yaw")
        assert abs(math.remainder(after - yaw, math.tau)) == pytest.approx(1.0, abs=0.05)
        assert abs(math.remainder(sim.get(f"{tower}/Hinge.outputs:angle") - after, math.tau)) < 0.15


def test_balloon_rises_in_air_and_not_in_vacuum(stage):
    system = stage("modelica_balloon_earth")
    height = next(str(p.ref) for p in system.ports("*outputs:position_y"))
    r = cosim.simulate(system, stop=10)
    assert r[height][-1] - r[height][0] > 2.0
    density = next(str(p.ref) for p in system.ports("*inputs:rho0"))
    vacuum = cosim.simulate(system, stop=10, start_values={density: 0.0})
    assert vacuum[height].max() - vacuum[height][0] < 1e-6


@pytest.mark.parametrize(
    "name", ["joint", "revolute_motor", "prismatic_drive", "sensor", "sun_tracker", "modelica_balloon_earth"]
)
def test_every_sample_stage_loads_without_errors(stage, name):
    system = stage(name)
    assert not [d for d in system.diagnostics if d.severity.name == "ERROR"]
