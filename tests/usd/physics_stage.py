"""Small stages from text, read into a `RigidBodyModel`."""

from __future__ import annotations

from dataclasses import dataclass

from pxr import Sdf, Usd

from cosim.diagnostic import DiagnosticLog, Severity
from cosim.mechanism import Collider, Joint, RigidBody, RigidBodyModel
from cosim.usd.physics import read_mechanism
from cosim.usd.reader import StageReader


@dataclass(frozen=True)
class Read:
    """A model and what was said about it."""

    model: RigidBodyModel
    log: DiagnosticLog
    reader: StageReader

    def codes(self, severity: Severity = Severity.INFO) -> list[str]:
        return [d.code for d in self.log if d.severity >= severity]

    @property
    def errors(self) -> list[str]:
        return self.codes(Severity.ERROR)

    def body(self, path: str) -> RigidBody:
        return next(b for b in self.model.bodies if b.path == path)

    def collider(self, path: str) -> Collider:
        return next(c for c in self.model.colliders if c.path == path)

    def joint(self, path: str = "/J") -> Joint:
        return next(j for j in self.model.joints if j.path == path)

    def said(self, code: str) -> str:
        """The one finding with this code, as the user sees it."""
        (found,) = [d for d in self.log if d.code == code]
        return str(found)


def read(text: str, *, metres: float = 1.0, up: str = "Y", kilograms: float = 1.0) -> Read:
    """Read a stage; statements may be separated by semicolons."""
    header = f'#usda 1.0\n(\n metersPerUnit = {metres}\n kilogramsPerUnit = {kilograms}\n upAxis = "{up}"\n)\n'
    layer = Sdf.Layer.CreateAnonymous("stage.usda")
    layer.ImportFromString(header + text.replace(";", "\n").replace("{", "{\n").replace("}", "\n}\n"))
    log = DiagnosticLog()
    reader = StageReader(Usd.Stage.Open(layer), log)
    model = read_mechanism(reader)
    reader.report_unrealised()
    return Read(model, log, reader)


def prim(kind: str, name: str, schemas: str = "", body: str = "") -> str:
    """`def KIND "NAME" (apiSchemas) { body }`; schemas by their names without Physics and API."""
    names = ", ".join(f'"{s if s.startswith(("LunCo", "Physx")) else f"Physics{s}"}"' for s in schemas.split())
    applied = f" (prepend apiSchemas = [{names}])" if names else ""
    return f'def {kind} "{name}"{applied} {{{body}}}\n'


def moved(**ops: object) -> str:
    """Transform ops in their order: translate=(x, y, z), orient=(w, x, y, z), rotateXYZ=…, scale=…."""
    types = {"orient": "quatd", "transform": "matrix4d"}
    lines = [f"{types.get(op, 'double3')} xformOp:{op} = {value};" for op, value in ops.items()]
    order = ", ".join(f'"xformOp:{op}"' for op in ops)
    return "".join(lines) + f"uniform token[] xformOpOrder = [{order}];"


RIGID = "RigidBodyAPI CollisionAPI"
