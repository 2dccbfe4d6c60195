"""OpenModelica as the back end, where its compiler `omc` is on the PATH."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from cosim.diagnostic import ModelicaError, UsageError
from cosim.modelica.library import Program

_TIMEOUT_S = 600
# omc writes `[file:line:column-line:column:writable] Error: text`.
_ERROR = re.compile(r"\[([^\]]*?):(\d+):(\d+)-[^\]]*\]\s*Error:\s*(.+)")


@dataclass(frozen=True, slots=True)
class Exported:
    """What omc made.

    Attributes:
        content: the FMU.
        states: continuous states.
        inputs: names.
        outputs: names.
    """

    content: bytes
    states: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def find_omc() -> str:
    """The program.

    Raises:
        UsageError: it is not on the PATH.
    """
    found = shutil.which("omc")
    if found is None:
        raise UsageError.of(
            "backend-missing",
            "the back end omc is OpenModelica's compiler, which is not on the PATH",
            hint="install it, or use builtin",
        )
    return found


def export(program: Program, name: str, fmi_version: str) -> Exported:
    """Compile a model to an FMU for model exchange and co-simulation.

    Args:
        program: the source.
        name: the class.
        fmi_version: "2.0" or "3.0".

    Raises:
        ModelicaError: omc refuses the model, or stops.
        UsageError: there is no omc.
    """
    omc = find_omc()
    with tempfile.TemporaryDirectory(prefix="cosim-omc-") as folder:
        (Path(folder) / "source.mo").write_text(program.text, encoding="utf-8")
        script = [
            'loadFile("source.mo"); getErrorString();',
            f'buildModelFMU({name}, version={json.dumps(fmi_version)}, fmuType="me_cs"); getErrorString();',
        ]
        (Path(folder) / "build.mos").write_text("\n".join(script) + "\n", encoding="utf-8")
        try:
            done = subprocess.run(
                [omc, "build.mos"], cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise ModelicaError.of(
                "modelica-backend-failed", f"omc took longer than {_TIMEOUT_S} s for {name}"
            ) from None
        made = sorted(Path(folder).glob("*.fmu"))
        if not made:
            raise _failure(done.stdout + done.stderr, name, program)
        return _described(made[0].read_bytes(), made[0])


def _failure(output: str, name: str, program: Program) -> ModelicaError:
    found = _ERROR.search(output)
    if found is None:
        last = " ".join(output.strip().splitlines()[-3:]) or "no output"
        return ModelicaError.of("modelica-backend-failed", f"omc made no FMU of {name}: {last}", program.place(1))
    where = program.place(int(found.group(2)), int(found.group(3)))
    return ModelicaError.of("modelica-backend-failed", f"{name}: {found.group(4).strip()}", where)


def _described(content: bytes, path: Path) -> Exported:
    with zipfile.ZipFile(path) as archive:
        root = ElementTree.fromstring(archive.read("modelDescription.xml"))
    variables = [v for v in root.iter() if v.get("causality") and v.get("name")]
    states = sum(1 for v in root.iter() if v.get("derivative"))
    return Exported(
        content,
        states,
        tuple(v.attrib["name"] for v in variables if v.get("causality") == "input"),
        tuple(v.attrib["name"] for v in variables if v.get("causality") == "output"),
    )
