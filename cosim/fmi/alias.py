"""The one fixed rule from FMU variable names to port names.

USD property names are identifiers joined by `:`. An FMU calls its variables
`imu.gyro[1]` or `der(x)`. `.` becomes `:`, `[i,j]` becomes `_i_j`, and any other
character that a USD identifier cannot have becomes `_`.
"""

from __future__ import annotations

import re

_INDEX = re.compile(r"\[\s*([0-9]+(?:\s*,\s*[0-9]+)*)\s*\]")


def port_name(variable: str) -> str:
    """The port name of an FMU variable: `imu.gyro[1]` gives `imu:gyro_1`."""
    text = _INDEX.sub(lambda m: "_" + re.sub(r"\s*,\s*", "_", m[1]), variable)
    return ":".join(_identifier(part) for part in text.split("."))


def element_name(variable: str, index: tuple[int, ...]) -> str:
    """The name of an element of an array variable, with indices from 1: `q[1,2]`."""
    return f"{variable}[{','.join(str(i) for i in index)}]"


def _identifier(text: str) -> str:
    # An identifier character is one that may follow a letter (Unicode XID_Continue, as in USD).
    legal = "".join(c if ("a" + c).isidentifier() else "_" for c in text)
    return legal if legal[:1].isidentifier() else f"_{legal}"
