"""The rigid-body component on Bullet against closed forms."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim import frame
from cosim.component import Direction, Experiment, PortRef
from cosim.diagnostic import DiagnosticLog, StageError, StepError
from cosim.mechanism import (
    Actuator,
    ActuatorKind,
    Collider,
    DistantLight,
    Drive,
    EnvironmentProbe,
    Joint,
    JointKind,
    MassProperties,
    Motion,
    Pose,
    RaySensor,
    RigidBody,
    RigidBodyModel,
    Shape,
    ShapeKind,
    SurfaceMaterial,
)
from cosim.rigid.component import RigidBodyComponent

G = 9.81
TURN_Z = (math.cos(math.pi / 4), 0.0, 0.0, math.sin(math.pi / 4))


class Run:
    """A component driven by hand."""

    def __init__(self, model, outputs, inputs=(), step="1/240", substeps=1, log=None):
        self.log = log if log is not None else DiagnosticLog()
        self.component = RigidBodyComponent(model, log=self.log, substeps=substeps)
        out = [self.component.find(PortRef.parse(name)) for name in outputs]
        ins = [self.component.find(PortRef.parse(name)) for name in inputs]
        assert all(out), outputs
        assert all(ins), inputs
        self.experiment = Experiment(step=Fraction(step))
        self.component.bind(ins, out)
        self.component.enter_initialization(self.experiment, ())
        self.inputs = np.array([0.0 if p.accumulate else math.nan for p in ins])
        self.values = np.zeros(len(out))
        self.component.set_inputs(self.inputs)
        self.component.exit_initialization()
        self.component.get_outputs(self.values)
        self.tick = 0

    def step(self, ticks=1):
        rows = []
        for _ in range(ticks):
            self.component.set_inputs(self.inputs)
            self.component.step(self.tick, 1)
            self.tick += 1
            self.component.get_outputs(self.values)
            rows.append(self.values.copy())
        return np.array(rows)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.component.close()


def body(path="/Body", position=(0.0, 0.0, 0.0), mass=2.0, inertia=(0.1, 0.2, 0.3), **options):
    center = options.pop("center", (0.0, 0.0, 0.0))
    axes = options.pop("axes", frame.IDENTITY)
    orientation = options.pop("orientation", frame.IDENTITY)
    motion = options.pop("motion", Motion.DYNAMIC)
    return RigidBody(path, motion, Pose(position, orientation), MassProperties(mass, center, inertia, axes), **options)


def names(path, *ports, direction="outputs"):
    return [f"{path}.{direction}:{port}" for port in ports]


def pendulum_model(angle=0.5, length=1.0, mass=1.0, drive=None, **options):
    """A rod's tip mass below a hinge at the origin with axis z; angle 0 hangs down."""
    turn = (math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2))
    tip = frame.rotate(turn, (0.0, -length, 0.0))
    # x of the joint frame onto the world's z
    axis = (math.sqrt(0.5), 0.0, -math.sqrt(0.5), 0.0)
    return RigidBodyModel(
        gravity=(0.0, -G, 0.0),
        bodies=(body("/Bob", tip, mass, (1e-4, 1e-4, 1e-4), orientation=turn),),
        joints=(
            Joint(
                "/Hinge",
                JointKind.REVOLUTE,
                "",
                "/Bob",
                Pose((0.0, 0.0, 0.0), axis),
                Pose((0.0, length, 0.0), axis),
                drive=drive or Drive(),
                **options,
            ),
        ),
    )


def test_b6_free_fall_has_only_the_semi_implicit_error():
    model = RigidBodyModel(gravity=(0.0, -G, 0.0), bodies=(body(),))
    with Run(model, names("/Body", "position_y", "velocity_y", "acceleration_y", "acceleration_valid")) as run:
        assert run.values[3] == 0.0
        rows = run.step(240)
    # Semi-implicit Euler: y = −g t (t + h) / 2
    assert rows[-1, 0] == pytest.approx(-G * (1 + 1 / 240) / 2, rel=1e-12)
    assert rows[-1, 1] == pytest.approx(-G, rel=1e-12)
    assert rows[:, 2] == pytest.approx(-G, rel=1e-9)
    assert np.all(rows[:, 3] == 1.0)


def test_b6_no_velocity_clamp():
    model = RigidBodyModel(
        gravity=(0.0, 0.0, 0.0), bodies=(body(linear_velocity=(500.0, 0, 0), angular_velocity=(0, 0, 300.0)),)
    )
    with Run(model, names("/Body", "velocity_x", "angvel_z", "position_x")) as run:
        rows = run.step(240)
    assert rows[-1, 0] == pytest.approx(500.0, rel=1e-12)
    assert rows[-1, 1] == pytest.approx(300.0, rel=1e-9)
    assert rows[-1, 2] == pytest.approx(500.0, rel=1e-9)


def test_p9_offset_center_of_mass_turns_about_itself_and_ports_are_the_prims():
    center = (0.3, -0.1, 0.2)
    model = RigidBodyModel(
        gravity=(0.0, 0.0, 0.0),
        bodies=(body(center=center, angular_velocity=(0.0, 0.0, 2.0), inertia=(0.1, 0.1, 0.1), axes=TURN_Z),),
    )
    ports = names("/Body", "position_x", "position_y", "position_z", "velocity_x", "velocity_y", "quat_w", "quat_z")
    with Run(model, ports) as run:
        assert run.values == pytest.approx([0, 0, 0, 0, 0, 1, 0], abs=1e-12)
        rows = run.step(240)
    # The prim's origin starts at rest, so the centre of mass moves with ω × r.
    t, omega = 1.0, 2.0
    moved = frame.add(center, tuple(t * v for v in frame.cross((0, 0, omega), center)))
    turn = (math.cos(omega * t / 2), 0.0, 0.0, math.sin(omega * t / 2))
    origin = frame.subtract(moved, frame.rotate(turn, center))
    assert rows[-1, :3] == pytest.approx(origin, abs=1e-9)
    velocity = frame.subtract(
        frame.cross((0, 0, omega), center), frame.cross((0, 0, omega), frame.rotate(turn, center))
    )
    assert rows[-1, 3:5] == pytest.approx(velocity[:2], abs=1e-9)
    assert rows[-1, 5:] == pytest.approx([turn[0], turn[3]], abs=1e-9)


def test_torque_and_force_act_in_the_world_and_in_the_body():
    model = RigidBodyModel(gravity=(0, 0, 0), bodies=(body(inertia=(1.0, 2.0, 4.0), orientation=TURN_Z),))
    outputs = names("/Body", "velocity_x", "velocity_y", "angvel_x", "angvel_y")
    inputs = names("/Body", "force_x", "force_local_x", "torque_x", direction="inputs")
    with Run(model, outputs, inputs) as run:
        run.inputs[:] = (2.0, 6.0, 1.0)
        row = run.step()[0] * 240
    # Body x is world y; torque about world x meets the moment about body y.
    assert row == pytest.approx([1.0, 3.0, 0.5, 0.0], abs=1e-9)


def test_forces_are_cleared_after_each_tick_and_last_through_all_substeps():
    model = RigidBodyModel(gravity=(0, 0, 0), bodies=(body(mass=2.0),))
    with Run(model, names("/Body", "velocity_x"), names("/Body", "force_x", direction="inputs"), substeps=4) as run:
        run.inputs[:] = 4.8
        assert run.step()[-1, 0] == pytest.approx(0.01, rel=1e-9)
        run.inputs[:] = 0.0
        assert run.step()[-1, 0] == pytest.approx(0.01, rel=1e-9)


@pytest.mark.parametrize("step", ["1/240", "1/480", "1/960"])
def test_pendulum_angle_converges_in_first_order(step):
    h = Fraction(step)
    with Run(pendulum_model(angle=0.5), names("/Hinge", "angle", "angular_velocity"), step=step) as run:
        assert run.values[0] == pytest.approx(0.5, abs=1e-9)
        rows = run.step(int(1 / h))
    exact = _pendulum(0.5, 1.0, G / 1.0001)
    error = abs(rows[-1, 0] - exact)
    assert error < 0.35 * float(h) * 2
    assert error > 1e-7


def _pendulum(angle, time, ratio):
    """θ'' = −(g/l)·sin θ by RK4 with tiny steps."""
    n = 20000
    h, y = time / n, np.array([angle, 0.0])

    def f(s):
        return np.array([s[1], -ratio * math.sin(s[0])])

    for _ in range(n):
        a = f(y)
        b = f(y + h / 2 * a)
        c = f(y + h / 2 * b)
        d = f(y + h * c)
        y = y + h / 6 * (a + 2 * b + 2 * c + d)
    return y[0]


def test_p25_angle_is_wrapped_while_the_rate_goes_on():
    model = pendulum_model(angle=0.0)
    model = RigidBodyModel(
        gravity=(0, 0, 0),
        bodies=(body("/Bob", (0, -1, 0), angular_velocity=(0, 0, 4.0), linear_velocity=(4.0, 0, 0)),),
        joints=model.joints,
    )
    with Run(model, names("/Hinge", "angle", "angular_velocity")) as run:
        rows = run.step(240)
    assert np.all(np.abs(rows[:, 0]) <= math.pi)
    assert rows[-1, 0] == pytest.approx(4.0 - 2 * math.pi, abs=1e-3)
    assert rows[-1, 1] == pytest.approx(4.0, rel=1e-6)


@pytest.mark.parametrize("swapped", [False, True])
def test_p27_displacement_is_signed_from_body0_to_body1(swapped):
    """Endpoints in either order: positive moves body1 along the axis as seen from body0."""
    ends = ("/Slider", "") if swapped else ("", "/Slider")
    model = RigidBodyModel(
        gravity=(3.0, 0, 0),
        bodies=(body("/Slider", (0.25, 0, 0)),),
        joints=(Joint("/Rail", JointKind.PRISMATIC, *ends, Pose(), Pose(), lower=-1.0, upper=1.0),),
    )
    with Run(model, names("/Rail", "displacement", "velocity", "force") + names("/Slider", "position_x")) as run:
        sign = -1.0 if swapped else 1.0
        assert run.values[0] == pytest.approx(sign * 0.25)
        run.step(20)
        assert run.values[0] == pytest.approx(sign * run.values[3], abs=1e-12)
        assert run.values[1] == pytest.approx(sign * 3.0 * 20 / 240, rel=1e-9)
        assert run.values[2] == pytest.approx(0.0, abs=1e-6)
        rows = run.step(480)
    assert rows[-1, 3] == pytest.approx(1.0, abs=2e-3)


def test_b3_one_sided_limit():
    model = RigidBodyModel(
        gravity=(-3.0, 0, 0),
        bodies=(body("/Slider"),),
        joints=(Joint("/Rail", JointKind.PRISMATIC, "", "/Slider", Pose(), Pose(), lower=-0.2),),
    )
    with Run(model, names("/Rail", "displacement")) as run:
        rows = run.step(480)
    assert rows[-1, 0] == pytest.approx(-0.2, abs=1e-3)


@pytest.mark.parametrize("acceleration", [True, False])
def test_p37_drive_holds_a_load_like_a_spring(acceleration):
    """A drive at rest sags by m·g/K (force) or g/K (acceleration)."""
    gain = 400.0 if acceleration else 800.0
    drive = Drive(
        target=0.5, stiffness=gain, damping=40.0 if acceleration else 80.0, acceleration=acceleration, is_active=True
    )
    model = RigidBodyModel(
        gravity=(-4.0, 0, 0),
        bodies=(body("/Slider", mass=2.0),),
        joints=(Joint("/Rail", JointKind.PRISMATIC, "", "/Slider", Pose(), Pose(), drive=drive),),
    )
    with Run(model, names("/Rail", "displacement", "force")) as run:
        rows = run.step(960)
    assert rows[-1, 0] == pytest.approx(0.5 - 0.01, abs=1e-5)
    assert rows[-1, 1] == pytest.approx(8.0, rel=1e-4)


def test_p37_force_drive_has_its_authored_period():
    """K = 50 N/m on 2 kg, no damping: the period is 2π·√(m/K)."""
    drive = Drive(target=0.0, stiffness=50.0, is_active=True)
    model = RigidBodyModel(
        gravity=(0, 0, 0),
        bodies=(body("/Slider", (0.1, 0, 0), mass=2.0),),
        joints=(Joint("/Rail", JointKind.PRISMATIC, "", "/Slider", Pose(), Pose(), drive=drive),),
    )
    with Run(model, names("/Rail", "displacement"), step="1/2000") as run:
        rows = run.step(2600)[:, 0]
    crossings = np.flatnonzero(np.diff(np.sign(rows)) != 0)
    half = (crossings[1] - crossings[0]) / 2000
    assert half == pytest.approx(math.pi * math.sqrt(2.0 / 50.0), rel=2e-3)


def test_p37_stalls_at_its_maximum_force():
    drive = Drive(target=1.0, stiffness=1e4, damping=100.0, max_effort=3.0, is_active=True)
    model = RigidBodyModel(
        gravity=(-4.0, 0, 0),
        bodies=(body("/Slider", mass=2.0),),
        joints=(Joint("/Rail", JointKind.PRISMATIC, "", "/Slider", Pose(), Pose(), drive=drive),),
    )
    with Run(model, names("/Rail", "velocity")) as run:
        rows = run.step(24)
    # 8 N of weight against 3 N of motor: 2.5 m/s² downwards.
    assert rows[-1, 0] == pytest.approx(-0.25, rel=1e-9)


def test_p34_output_is_measured_and_never_echoes_the_command():
    drive = Drive(stiffness=355.0, damping=75.0, acceleration=True, max_effort=0.0)
    with Run(
        pendulum_model(angle=0.0, drive=drive), names("/Hinge", "angle"), names("/Hinge", "angle", direction="inputs")
    ) as run:
        run.inputs[:] = 1.0
        rows = run.step(240)
    assert np.all(np.abs(rows) < 1e-9)


def test_p38_wire_overrides_the_target_and_release_gives_it_back():
    drive = Drive(target=0.3, stiffness=355.0, damping=37.7, acceleration=True, is_active=True)
    model = pendulum_model(angle=0.0, drive=drive)
    model = RigidBodyModel(gravity=(0, 0, 0), bodies=model.bodies, joints=model.joints)
    with Run(model, names("/Hinge", "angle"), names("/Hinge", "angle", direction="inputs")) as run:
        assert run.step(480)[-1, 0] == pytest.approx(0.3, abs=1e-3)
        run.inputs[:] = -0.4
        assert run.step(480)[-1, 0] == pytest.approx(-0.4, abs=1e-3)
        run.inputs[:] = math.nan
        assert run.step(480)[-1, 0] == pytest.approx(0.3, abs=1e-3)


def test_unlimited_hinge_takes_the_short_way_round():
    drive = Drive(stiffness=355.0, damping=37.7, acceleration=True)
    model = pendulum_model(angle=0.0, drive=drive)
    model = RigidBodyModel(gravity=(0, 0, 0), bodies=model.bodies, joints=model.joints)
    with Run(model, names("/Hinge", "angle", "angular_velocity"), names("/Hinge", "angle", direction="inputs")) as run:
        run.inputs[:] = 3.0
        run.step(720)
        run.inputs[:] = -3.0
        rows = run.step(720)
    assert rows[-1, 0] == pytest.approx(-3.0, abs=1e-3)
    assert rows[:, 1].min() > -0.1, "it went on through π, not back"


def test_p18_joint_torque_is_what_body0_does_to_body1():
    """A horizontal pendulum held by its motor: m·g·l about the joint axis."""
    drive = Drive(target=math.pi / 2, stiffness=4000.0, damping=200.0, acceleration=True, is_active=True)
    with Run(pendulum_model(angle=math.pi / 2, drive=drive), names("/Hinge", "torque")) as run:
        rows = run.step(480)
    assert rows[-1, 0] == pytest.approx(G, rel=1e-3)


def test_p28_fixed_joint_welds_and_has_no_port():
    model = RigidBodyModel(
        gravity=(0, -G, 0),
        bodies=(body("/A", (0, 1, 0), motion=Motion.KINEMATIC), body("/B", (2, 1, 0))),
        joints=(Joint("/Weld", JointKind.FIXED, "/A", "/B", Pose((1, 0, 0)), Pose((-1, 0, 0))),),
    )
    with Run(model, names("/B", "position_x", "position_y")) as run:
        rows = run.step(240)
        assert not [p for p in run.component.ports() if p.ref.path == "/Weld"]
    assert rows[-1] == pytest.approx([2, 1], abs=1e-9)


def test_kinematic_body_goes_where_it_is_put_and_carries_what_hangs_on_it():
    model = RigidBodyModel(
        gravity=(0, 0, 0),
        bodies=(body("/A", (0, 1, 0), motion=Motion.KINEMATIC), body("/B", (2, 1, 0))),
        joints=(Joint("/Weld", JointKind.FIXED, "/A", "/B", Pose((1, 0, 0)), Pose((-1, 0, 0))),),
    )
    inputs = names("/A", "position_x", "quat_w", "quat_x", "quat_y", "quat_z", direction="inputs")
    with Run(model, names("/B", "position_x", "position_y", "quat_z"), inputs) as run:
        run.inputs[0] = 3.0
        assert run.step()[-1] == pytest.approx([5, 1, 0], abs=1e-9)
        run.inputs[1:] = TURN_Z
        assert run.step()[-1] == pytest.approx([3, 3, TURN_Z[3]], abs=1e-9)
        run.inputs[1:] = 0.0
        with pytest.raises(StepError, match="/A"):
            run.step()


def box(path, owner, position=(0, 0, 0), half=(0.5, 0.5, 0.5), **options):
    return Collider(path, owner, Pose(position), Shape(ShapeKind.BOX, half_extents=half), **options)


GROUND = box("/Ground", "", (0, -0.5, 0), (50, 0.5, 50))


def test_b14_contact_force_of_a_resting_box_is_its_weight():
    model = RigidBodyModel(
        gravity=(0, -1.62, 0),
        bodies=(body("/Box", (0, 0.5, 0), mass=100.0, inertia=(16.7, 16.7, 16.7)),),
        colliders=(box("/Box", "/Box"), GROUND),
    )
    with Run(model, names("/Box", "contact", "contact_force", "position_y") + names("/Ground", "contact_force")) as run:
        rows = run.step(960)
    assert rows[-1] == pytest.approx([1.0, 162.0, 0.5, 162.0], rel=1e-3)


def test_b21_each_collider_of_a_body_has_its_own_contact():
    model = RigidBodyModel(
        gravity=(0, -G, 0),
        bodies=(body("/Table", (0, 1.0, 0), mass=10.0, inertia=(1, 1, 1)),),
        colliders=(
            box("/Table/Left", "/Table", (-1, -0.5, 0), (0.1, 0.5, 0.1)),
            box("/Table/Right", "/Table", (1, -0.5, 0), (0.1, 0.5, 0.1)),
            box("/Table/Top", "/Table", (0, 0.1, 0), (1.2, 0.1, 0.5)),
            GROUND,
        ),
    )
    ports = [f"/Table{p}.outputs:contact_force" for p in ("", "/Left", "/Right", "/Top")]
    with Run(model, ports) as run:
        rows = run.step(720)
    total, left, right, top = rows[-1]
    assert total == pytest.approx(10 * G, rel=2e-3)
    # Two wide feet are statically indeterminate: only their sum and rough shares are known.
    assert left + right == pytest.approx(total, rel=1e-12)
    assert left == pytest.approx(5 * G, rel=0.15)
    assert top == 0.0


def test_p60_jointed_bodies_do_not_collide_but_grandparents_do():
    hinge = {"lower": None, "upper": None}
    model = RigidBodyModel(
        gravity=(0, 0, 0),
        bodies=tuple(body(f"/{n}", (0.2 * i, 0, 0)) for i, n in enumerate("ABC")),
        colliders=tuple(box(f"/{n}", f"/{n}", half=(0.15, 0.15, 0.15)) for n in "ABC"),
        joints=(
            Joint("/AB", JointKind.PRISMATIC, "/A", "/B", Pose((0.2, 0, 0)), Pose(), **hinge),
            Joint("/BC", JointKind.PRISMATIC, "/B", "/C", Pose((0.2, 0, 0)), Pose(), **hinge),
        ),
    )
    with Run(model, names("/A", "contact") + names("/B", "contact")) as run:
        run.step(2)
        assert run.values.tolist() == [0.0, 0.0]
    shifted = tuple(body(f"/{n}", (0.1 * i, 0, 0)) for i, n in enumerate("ABC"))
    model = RigidBodyModel(gravity=(0, 0, 0), bodies=shifted, colliders=model.colliders, joints=model.joints)
    with Run(model, names("/A", "contact") + names("/B", "contact") + names("/C", "contact")) as run:
        run.step(1)
        assert run.values.tolist() == [1.0, 0.0, 1.0]


def test_p61_filtered_pairs_never_touch():
    model = RigidBodyModel(
        gravity=(0, -G, 0),
        bodies=(body("/Box", (0, 0.5, 0)),),
        colliders=(box("/Box", "/Box"), GROUND),
        filtered_pairs=(("/Box", "/Ground"),),
    )
    with Run(model, names("/Box", "position_y", "contact")) as run:
        rows = run.step(240)
    assert rows[-1, 0] == pytest.approx(0.5 - G * (1 + 1 / 240) / 2)
    assert not rows[:, 1].any()


@pytest.mark.parametrize("mu, slides", [(0.3, True), (0.8, False)])
def test_friction_of_equal_materials_is_that_of_each(mu, slides):
    """On a slope of 30° (tilted gravity) a box slides where tan 30° = 0.577 exceeds μ."""
    material = SurfaceMaterial(mu, mu, 0.0)
    slope = math.radians(30)
    model = RigidBodyModel(
        gravity=(G * math.sin(slope), -G * math.cos(slope), 0),
        bodies=(body("/Box", (0, 0.1, 0), mass=5.0, inertia=(0.1, 0.1, 0.1)),),
        colliders=(
            box("/Box", "/Box", half=(0.5, 0.1, 0.5), material=material),
            box("/Ground", "", (0, -0.5, 0), (50, 0.5, 50), material=material),
        ),
    )
    with Run(model, names("/Box", "velocity_x")) as run:
        rows = run.step(240)
    expected = G * (math.sin(slope) - mu * math.cos(slope)) if slides else 0.0
    assert rows[-1, 0] == pytest.approx(expected, rel=0.03, abs=0.02)


RAY_PORTS = ("ray_distance", "ray_hit_valid", "ray_hit_position_y", "ray_hit_normal_y", "ray_sample_time")


def test_p78_ray_distance_and_p80_a_miss_keeps_nothing():
    model = RigidBodyModel(
        gravity=(0, 0, 0),
        bodies=(body("/Box", (0, 3.0, 0), linear_velocity=(0, 60.0, 0)),),
        colliders=(box("/Box", "/Box"), GROUND),
        rays=(RaySensor("/Box/Ray", "/Box", (0, 0.3, 0), (0, -1, 0), 4.0),),
    )
    with Run(model, names("/Box/Ray", *RAY_PORTS)) as run:
        assert run.values == pytest.approx([3.3, 1, 0, 1, 0], abs=1e-6)
        rows = run.step(4)
    assert rows[0] == pytest.approx([3.55, 1, 0, 1, 1 / 240], abs=1e-6)
    assert rows[-1] == pytest.approx([0, 0, 0, 0, 4 / 240], abs=1e-12)


def test_p81_own_body_is_not_hit_also_from_outside():
    model = RigidBodyModel(
        gravity=(0, 0, 0),
        bodies=(body("/Box", (0, 3.0, 0)),),
        colliders=(box("/Box", "/Box"), box("/Box/Foot", "/Box", (0, -1.5, 0), (0.2, 0.2, 0.2)), GROUND),
        rays=(RaySensor("/Box/Ray", "/Box", (0, 2.0, 0), (0, -1, 0), 10.0),),
    )
    with Run(model, names("/Box/Ray", *RAY_PORTS)) as run:
        assert run.values == pytest.approx([5.0, 1, 0, 1, 0], abs=1e-6)


def test_p79_ray_turns_with_its_body():
    model = RigidBodyModel(
        gravity=(0, 0, 0),
        bodies=(body("/Box", (0, 2.0, 0), orientation=TURN_Z),),
        colliders=(GROUND,),
        # body −x is world −y
        rays=(RaySensor("/Box/Ray", "/Box", (0.5, 0, 0), (-1, 0, 0), 10.0),),
    )
    ports = names("/Box/Ray", "ray_distance", "ray_origin_body_local_x", "ray_direction_body_local_x")
    with Run(model, ports) as run:
        assert run.values == pytest.approx([2.5, 0.5, -1.0], abs=1e-6)


def test_p83_probe_publishes_gravity_and_the_sun_in_its_mount():
    model = RigidBodyModel(
        gravity=(0, -1.62, 0),
        bodies=(body("/Box", orientation=TURN_Z),),
        probes=(EnvironmentProbe("/Box/Probe", "/Box", frame.IDENTITY, "/Sun"),),
        lights=(DistantLight("/Sun", (0.0, 1.0, 0.0)),),
    )
    outputs = names("/Box/Probe", "gravity_accel", "gravity_y", "sun_mount_x", "sun_mount_y")
    with Run(model, outputs, names("/Sun", "direction_x", "direction_y", direction="inputs")) as run:
        # world y is body x
        assert run.values == pytest.approx([1.62, -1.62, 1.0, 0.0], abs=1e-6)
        run.inputs[:] = (-7.0, 0.0)
        assert run.step()[-1, 2:] == pytest.approx([0.0, 1.0], abs=1e-9)
        run.inputs[:] = (0.0, 0.0)
        with pytest.raises(StepError, match="/Sun"):
            run.step()


def test_actuator_clamps_and_pushes_where_it_is_mounted():
    model = RigidBodyModel(
        gravity=(0, 0, 0),
        bodies=(body("/Box", mass=2.0, inertia=(1, 1, 0.5), orientation=TURN_Z),),
        actuators=(
            Actuator("/Box/Jet", ActuatorKind.FORCE, "/Box", (1.0, 0, 0), (0, 1, 0), 4.0),
            Actuator("/Box/Wheel", ActuatorKind.TORQUE, "/Box", (0, 0, 0), (1, 0, 0), 3.0),
        ),
    )
    outputs = names("/Box", "velocity_x", "velocity_y", "angvel_z", "angvel_y")
    inputs = ["/Box/Jet.inputs:force_command", "/Box/Wheel.inputs:torque_command"]
    with Run(model, outputs, inputs) as run:
        run.inputs[:] = (100.0, -100.0)
        # body y is world −x, body x is world y; lever 1 m about z; −3 N·m about body x with I = 1
        assert run.step()[-1] * 240 == pytest.approx([-2.0, 0.0, 8.0, -3.0], abs=1e-9)
        run.inputs[:] = (-5.0, 0.0)
        before = run.values.copy()
        assert run.step()[-1][:2] == pytest.approx(before[:2], abs=1e-12)


def test_mass_can_be_driven_and_rescales_the_tensor():
    model = RigidBodyModel(gravity=(0, 0, 0), bodies=(body("/Tank", mass=2.0, inertia=(1, 1, 1)),))
    outputs = names("/Tank", "velocity_x", "angvel_x", "mass", "inertia_xx")
    inputs = names("/Tank", "force_x", "torque_x", "mass", direction="inputs")
    with Run(model, outputs, inputs) as run:
        run.inputs[:] = (4.0, 4.0, 4.0)
        row = run.step()[-1]
        assert row * [240, 240, 1, 1] == pytest.approx([1.0, 2.0, 4.0, 2.0])
        run.inputs[2] = -1.0
        with pytest.raises(StepError, match="must be positive"):
            run.step()


def test_hold_and_release_of_unbound_inputs():
    model = RigidBodyModel(gravity=(0, 0, 0), bodies=(body("/Box", mass=2.0, orientation=TURN_Z),))
    with Run(model, names("/Box", "velocity_x", "velocity_y")) as run:
        port = run.component.find(PortRef("/Box", Direction.INPUT, "force_local_x"))
        run.component.hold(port, 4.8)
        assert run.step()[-1] == pytest.approx([0, 0.01], abs=1e-12)
        run.component.release(port)
        assert run.step()[-1] == pytest.approx([0, 0.01], abs=1e-12)
        with pytest.raises(StepError):
            run.component.hold(run.component.find(PortRef("/Box", Direction.OUTPUT, "speed")), 1.0)


def test_b16_restore_continues_bit_for_bit():
    boxes = tuple(body(f"/B{i}", (0.05 * i, 0.6 + 1.05 * i, 0), inertia=(0.3, 0.3, 0.3)) for i in range(9))
    drive = Drive(target=0.3, stiffness=355.0, damping=37.7, acceleration=True, is_active=True)
    hinge = pendulum_model(drive=drive)
    model = RigidBodyModel(
        gravity=(0, -G, 0),
        bodies=tuple(sorted((*boxes, *(b for b in hinge.bodies)), key=lambda b: b.path)),
        colliders=(*(box(b.path, b.path) for b in boxes), GROUND),
        joints=hinge.joints,
    )
    outputs = [f"/B{i}.outputs:{p}" for i in range(9) for p in ("position_x", "velocity_y", "acceleration_y")]
    with Run(model, [*outputs, "/Hinge.outputs:angle"], ["/Hinge.inputs:angle"]) as run:
        run.inputs[:] = 0.2
        run.step(100)
        state, tick = run.component.save(), run.tick
        first = run.step(100)
        run.component.restore(state)
        run.tick = tick
        assert np.array_equal(run.step(100), first)


def test_p48_immovable_ends_that_do_not_meet_are_an_error():
    log = DiagnosticLog()
    model = RigidBodyModel(
        bodies=(body("/A", motion=Motion.STATIC), body("/B", (3, 0, 0), motion=Motion.KINEMATIC)),
        joints=(Joint("/Weld", JointKind.FIXED, "/A", "/B", Pose((1, 0, 0)), Pose((-1, 0, 0))),),
    )
    RigidBodyComponent(model, log=log)
    assert [d.code for d in log.errors] == ["physics-joint-seating-invalid"]


def test_p51_compatible_immovable_ends_are_no_fault():
    log = DiagnosticLog()
    model = RigidBodyModel(
        bodies=(body("/A", motion=Motion.STATIC), body("/B", (2, 0, 0), motion=Motion.KINEMATIC)),
        joints=(Joint("/Weld", JointKind.FIXED, "/A", "/B", Pose((1, 0, 0)), Pose((-1, 0, 0))),),
    )
    RigidBodyComponent(model, log=log)
    assert [d.code for d in log] == ["joint-all-static"]


def test_p46_movable_end_is_seated_and_the_distance_reported():
    log = DiagnosticLog()
    model = RigidBodyModel(
        bodies=(body("/A", (0.5, 0, 0)), body("/B", (2, 0, 0), motion=Motion.STATIC)),
        joints=(Joint("/Weld", JointKind.FIXED, "/A", "/B", Pose((1, 0, 0)), Pose((-1, 0, 0))),),
    )
    with Run(model, names("/A", "position_x"), log=log) as run:
        assert run.values[0] == pytest.approx(0.0, abs=1e-9)
    assert [d.code for d in log] == ["joint-seated"]
    assert "0.5 m" in log.items[0].message


def test_loops_and_doubled_joints_are_refused():
    log = DiagnosticLog()
    bodies = tuple(body(f"/{n}") for n in "ABC")
    pairs = (("A", "B"), ("B", "C"), ("C", "A"))
    joints = tuple(Joint(f"/{a}{b}", JointKind.FIXED, f"/{a}", f"/{b}", Pose(), Pose()) for a, b in pairs)
    RigidBodyComponent(RigidBodyModel(bodies=bodies, joints=joints), log=log)
    assert [d.code for d in log.errors] == ["joint-loop-unsupported"]
    log = DiagnosticLog()
    twice = tuple(Joint(f"/J{i}", JointKind.REVOLUTE, "/A", "/B", Pose(), Pose()) for i in range(2))
    RigidBodyComponent(RigidBodyModel(bodies=bodies, joints=twice), log=log)
    assert [d.code for d in log.errors] == ["joint-pair-overconstrained"]


def test_disabled_joint_does_nothing():
    model = RigidBodyModel(
        gravity=(0, -G, 0),
        bodies=(body("/A", (0, 1, 0)),),
        joints=(Joint("/Weld", JointKind.FIXED, "", "/A", Pose(), Pose(), enabled=False),),
    )
    with Run(model, names("/A", "velocity_y")) as run:
        assert run.step(24)[-1, 0] == pytest.approx(-G / 10)


def test_gravity_can_be_left_out_for_a_body():
    model = RigidBodyModel(gravity=(0, -G, 0), bodies=(body("/A", gravity=False), body("/B", (3, 0, 0))))
    with Run(model, names("/A", "velocity_y") + names("/B", "velocity_y")) as run:
        assert run.step(24)[-1] == pytest.approx([0.0, -G / 10], abs=1e-9)


def test_state_that_is_not_finite_names_the_body():
    model = RigidBodyModel(gravity=(0, 0, 0), bodies=(body("/Box", mass=1e-3, inertia=(1e-9, 1e-9, 1e-9)),))
    with Run(model, names("/Box", "velocity_x"), names("/Box", "force_x", direction="inputs")) as run:
        run.inputs[:] = 1e308
        with pytest.raises(StepError, match="/Box"):
            run.step(5)


def test_unknown_core_is_a_usage_error():
    with pytest.raises(Exception, match="rigid-body core"):
        RigidBodyComponent(RigidBodyModel(), core="none")


@pytest.mark.parametrize("kind", [k for k in ShapeKind if k is not ShapeKind.MESH])
def test_p16_every_shape_rests_at_its_own_height(kind):
    corners = tuple((x, y, z) for x in (-0.3, 0.3) for y in (-0.3, 0.3) for z in (-0.3, 0.3))
    shape = Shape(kind, half_extents=(0.3, 0.3, 0.3), radius=0.3, height=0.6, points=corners)
    height = {ShapeKind.CAPSULE: 0.6}.get(kind, 0.3)
    # z of round shapes up
    up = (math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)
    model = RigidBodyModel(
        gravity=(0, -G, 0),
        bodies=(body("/S", (0, height + 0.01, 0), inertia=(0.2, 0.2, 0.2)),),
        colliders=(Collider("/S", "/S", Pose(orientation=up), shape), GROUND),
    )
    log = DiagnosticLog()
    with Run(model, names("/S", "position_y"), log=log) as run:
        rows = run.step(480)
    assert rows[-1, 0] == pytest.approx(height, abs=3e-3)
    assert [d.code for d in log] == (["collider-approximated"] if kind is ShapeKind.CONE else [])


def test_p17_finite_plane_mesh_is_hit_inside_and_missed_outside():
    points = ((-1.0, 0.0, -2.0), (1.0, 0.0, -2.0), (1.0, 0.0, 2.0), (-1.0, 0.0, 2.0))
    mesh = Shape(ShapeKind.MESH, points=points, triangles=((0, 2, 1), (0, 3, 2)))
    rays = tuple(
        RaySensor(f"/R{i}", "", (x, 1.0, z), (0, -1, 0), 5.0)
        for i, (x, z) in enumerate(((0.99, 1.99), (1.01, 0.0), (0.0, 2.01)))
    )
    model = RigidBodyModel(colliders=(Collider("/Plane", "", Pose((0, 0.25, 0)), mesh),), rays=rays)
    with Run(model, [f"/R{i}.outputs:ray_distance" for i in range(3)]) as run:
        assert run.values == pytest.approx([0.75, 0, 0], abs=1e-6)


def test_broken_shape_is_an_error_that_names_the_prim():
    model = RigidBodyModel(
        colliders=(Collider("/Huge", "", Pose(), Shape(ShapeKind.HULL, points=((0.0, 0, 0),) * 131_073)),)
    )
    with pytest.raises(StageError, match="/Huge"):
        Run(model, [])


unit = st.floats(-1, 1)


@settings(max_examples=30, deadline=None)
@given(q=st.tuples(unit, unit, unit, unit), r=st.tuples(unit, unit, unit, unit), v=st.tuples(unit, unit, unit))
def test_frames_agree_with_rotation_matrices(q, r, v):
    if min(sum(c * c for c in q), sum(c * c for c in r)) < 1e-6:
        return
    q, r = frame.normalised(q), frame.normalised(r)

    def matrix(a):
        return np.array([frame.rotate(a, e) for e in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]).T

    assert matrix(frame.multiply(q, r)) == pytest.approx(matrix(q) @ matrix(r), abs=1e-12)
    assert matrix(frame.conjugate(q)) == pytest.approx(matrix(q).T, abs=1e-12)
    pose = Pose(v, q)
    assert frame.transform(frame.inverse(pose), frame.transform(pose, (1, 2, 3))) == pytest.approx((1, 2, 3), abs=1e-12)


@settings(max_examples=15, deadline=None)
@given(yaw=st.floats(-3, 3), pitch=st.floats(-1.5, 1.5), roll=st.floats(-3, 3))
def test_yaw_pitch_roll_are_yxz(yaw, pitch, roll):
    def about(axis, angle):
        s = math.sin(angle / 2)
        return (math.cos(angle / 2), s if axis == 0 else 0.0, s if axis == 1 else 0.0, s if axis == 2 else 0.0)

    q = frame.multiply(about(1, yaw), frame.multiply(about(0, pitch), about(2, roll)))
    model = RigidBodyModel(gravity=(0, 0, 0), bodies=(body(orientation=q),))
    with Run(model, names("/Body", "yaw", "pitch", "roll")) as run:
        assert run.values == pytest.approx([yaw, pitch, roll], abs=1e-9)
