"""Which kind of instance an FMU becomes."""

from __future__ import annotations

from cosim.diagnostic import FmuError
from cosim.fmi.fmi2 import Fmi2Instance
from cosim.fmi.fmi3 import Fmi3Instance
from cosim.fmi.instance import Instance
from cosim.fmi.library import Fmu, load_library
from cosim.fmi.log import FmuLog
from cosim.fmi.model_exchange import Fmi2ModelExchange, Fmi3ModelExchange


def make_instance(fmu: Fmu, name: str, log: FmuLog, tolerance: float | None) -> Instance:
    """Instantiate an FMU: its co-simulation interface, else model exchange with the host's solver.

    Args:
        fmu: what to instantiate.
        name: instance name.
        log: gets its messages.
        tolerance: relative tolerance of the host's solver; None takes the FMU's, else 1e-6.

    Raises:
        FmuError: it does not load, or refuses.
    """
    description = fmu.description
    if description.co_simulation is not None:
        interface = description.co_simulation
        kind = Fmi2Instance if description.major == 2 else Fmi3Instance
        return kind(fmu, interface, load_library(fmu, interface), name, log)
    if description.model_exchange is None:
        raise FmuError.of("fmu-interface-missing", f"{fmu.path.name} has no interface that can run", fmu.where)
    interface = description.model_exchange
    exchange = Fmi2ModelExchange if description.major == 2 else Fmi3ModelExchange
    instance = exchange(fmu, interface, load_library(fmu, interface), name, log)
    instance.tolerance = tolerance or description.experiment.tolerance or 1e-6
    return instance
