"""How a host and its worker process talk.

A message is one tag byte and a payload: raw float64 arrays for the inner loop, JSON for the
rest. Nothing that comes from a worker is unpickled, since an FMU in it may write anything.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from cosim.component import Experiment
from cosim.diagnostic import (
    CosimError,
    Diagnostic,
    FmuError,
    ModelicaError,
    Severity,
    SourceLocation,
    StageError,
    StepError,
    UsageError,
    WiringError,
)

CALL, STEP, SET, GET = b"C", b"S", b"I", b"G"
RESULT, VALUES, FAILED = b"R", b"V", b"E"

_ERRORS: dict[str, type[CosimError]] = {
    kind.__name__: kind for kind in (UsageError, StageError, WiringError, ModelicaError, FmuError, StepError)
}


def pack(value: Any) -> bytes:
    """JSON, with bytes as {"hex": …}."""
    return json.dumps(value, default=_encode).encode()


def unpack(content: bytes) -> Any:
    """What `pack` wrote."""
    return json.loads(content, object_hook=_decode)


def _encode(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    return float(value)  # numpy scalars


def _decode(value: dict[str, Any]) -> Any:
    return bytes.fromhex(value["hex"]) if value.keys() == {"hex"} else value


def experiment_to_json(experiment: Experiment) -> dict[str, Any]:
    """An experiment as JSON, exactly."""
    return {
        "step": str(experiment.step),
        "start": str(experiment.start),
        "stop": None if experiment.stop is None else str(experiment.stop),
        "tolerance": experiment.tolerance,
        "seed": experiment.seed,
    }


def experiment_from_json(value: dict[str, Any]) -> Experiment:
    """The experiment of `experiment_to_json`."""
    return Experiment(
        step=Fraction(value["step"]),
        start=Fraction(value["start"]),
        stop=None if value["stop"] is None else Fraction(value["stop"]),
        tolerance=value["tolerance"],
        seed=value["seed"],
    )


def diagnostics_to_json(found: Any) -> list[dict[str, Any]]:
    """Diagnostics as JSON."""
    return [d.as_dict() for d in found]


def diagnostics_from_json(found: list[dict[str, Any]]) -> list[Diagnostic]:
    """The diagnostics of `diagnostics_to_json`."""
    return [
        Diagnostic(
            Severity[str(d["severity"]).upper()],
            str(d["code"]),
            str(d["message"]),
            _place(d["where"]),
            str(d["hint"]),
            tuple(p for p in map(_place, d["related"]) if p is not None),
        )
        for d in found
    ]


def _place(value: dict[str, Any] | None) -> SourceLocation | None:
    return None if value is None else SourceLocation(**value)


def error_to_json(error: Exception) -> dict[str, Any]:
    """An exception as JSON."""
    if isinstance(error, CosimError):
        return {"kind": type(error).__name__, "diagnostics": diagnostics_to_json(error.diagnostics)}
    found = Diagnostic(Severity.ERROR, "fmu-worker-failed", f"the worker failed: {type(error).__name__}: {error}")
    return {"kind": "StepError", "diagnostics": diagnostics_to_json([found])}


def error_from_json(value: dict[str, Any]) -> CosimError:
    """The exception of `error_to_json`."""
    return _ERRORS.get(value["kind"], StepError)(*diagnostics_from_json(value["diagnostics"]))
