"""What an FMU says while it runs: bounded, readable afterwards, formatted without trusting it.

FMI 2 loggers are variadic C functions, which ctypes cannot receive. A small library that
ships with fmpy formats the message in C; where it does not load, the format text itself is
kept. All instances share one callback, which tells them apart by the component environment.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import itertools
import sys
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_KEPT_LINES = 200
_LONGEST_LINE = 2000
_STATUS_NAMES = ("OK", "Warning", "Discard", "Error", "Fatal", "Pending")


def status_name(status: int) -> str:
    """The FMI name of a status; its number if FMI has no such status."""
    return _STATUS_NAMES[status] if 0 <= status < len(_STATUS_NAMES) else f"status {status}"


@dataclass(frozen=True, slots=True)
class LogLine:
    """One message of an FMU."""

    status: int
    category: str
    text: str

    def __str__(self) -> str:
        return f"[{status_name(self.status)}{' ' + self.category if self.category else ''}] {self.text}"


class FmuLog:
    """The last messages of one instance.

    Attributes:
        lines: the messages that are kept, oldest first.
        count: how many there were.
        key: what the callbacks get as component environment.
        listener: called with every message as text, at once.
    """

    def __init__(self) -> None:
        self.lines: deque[LogLine] = deque(maxlen=_KEPT_LINES)
        self.count = 0
        self.listener: Callable[[str], None] | None = None
        self.key = next(_keys)
        _logs[self.key] = self

    def add(self, status: int, category: bytes | None, text: bytes | None) -> None:
        """Keep a message."""
        self.count += 1
        line = (text or b"")[:_LONGEST_LINE].decode("utf-8", "replace").rstrip()
        self.lines.append(LogLine(status, (category or b"")[:80].decode("utf-8", "replace"), line))
        if self.listener is not None:
            self.listener(str(self.lines[-1]))

    def tail(self, count: int = 5) -> tuple[str, ...]:
        """The last messages as text."""
        return tuple(str(line) for line in list(self.lines)[-count:])


_keys = itertools.count(1)
_logs: weakref.WeakValueDictionary[int, FmuLog] = weakref.WeakValueDictionary()


def _receive(environment: int | None, status: int, category: bytes | None, text: bytes | None) -> None:
    log = _logs.get(environment or 0)
    if log is not None:
        log.add(status, category, text)


_Logger2 = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
_Logger3 = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)
logger2 = _Logger2(lambda environment, _, status, category, text: _receive(environment, status, category, text))
logger3 = _Logger3(_receive)


class Callbacks2(ctypes.Structure):
    """`fmi2CallbackFunctions`."""

    _fields_ = (
        ("logger", ctypes.c_void_p),
        ("allocateMemory", ctypes.c_void_p),
        ("freeMemory", ctypes.c_void_p),
        ("stepFinished", ctypes.c_void_p),
        ("componentEnvironment", ctypes.c_void_p),
    )


def callbacks2(log: FmuLog) -> Callbacks2:
    """The callbacks of one FMI 2 instance; they must live as long as it does."""
    allocate, free = _memory_functions()
    logger = ctypes.cast(logger2, ctypes.c_void_p)
    made = Callbacks2(logger, allocate, free, None, log.key)
    proxy = _logger_proxy()
    if proxy is not None:
        proxy(ctypes.byref(made))
    return made


@functools.cache
def _memory_functions() -> tuple[int | None, int | None]:
    runtime = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
    return tuple(ctypes.cast(f, ctypes.c_void_p).value for f in (runtime.calloc, runtime.free))  # type: ignore[return-value]


@functools.cache
def _logger_proxy() -> ctypes._NamedFuncPointer | None:
    """The function that puts a formatting C logger before ours."""
    package = importlib.util.find_spec("fmpy")  # does not import it
    folders = {"linux": ("linux64", ".so"), "darwin": ("darwin64", ".dylib"), "win32": ("win64", ".dll")}
    if package is None or package.origin is None or sys.platform not in folders:
        return None
    folder, suffix = folders[sys.platform]
    try:
        library = ctypes.CDLL(str(Path(package.origin).parent / "logging" / folder / f"logging{suffix}"))
        proxy = library.addLoggerProxy
    except (OSError, AttributeError):
        return None  # another architecture: formats stay as they are, which loses no message
    proxy.argtypes = [ctypes.c_void_p]
    proxy.restype = None
    return proxy
