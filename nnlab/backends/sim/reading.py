"""How a device array becomes a Python value: always a copy to the host, and a wait for the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnlab.backends.sim.core import DeviceArray


class Reading(DeviceArray):
    """The conversions of an array. Each one is counted under its own name."""

    __slots__ = ()

    def _read(self, name: str) -> Any:
        if self._data.size != 1:
            raise ValueError(f"{name} needs an array with one element, not one of shape {self._data.shape}")
        self._gpu.download(name, self._data.nbytes)
        return self._data.item()

    def item(self) -> Any:
        """The one element as a Python number."""
        return self._read("item()")

    def __float__(self) -> float:
        return float(self._read("float()"))

    def __int__(self) -> int:
        return int(self._read("int()"))

    def __complex__(self) -> complex:
        return complex(self._read("complex()"))

    def __bool__(self) -> bool:
        return bool(self._read("bool()"))

    def __index__(self) -> int:
        if self._data.ndim or self._data.dtype.kind not in "iu":
            raise TypeError("only 0-d arrays of integers can be used as an index")
        return int(self._read("index()"))

    def tolist(self) -> Any:
        """The values as (nested) Python lists."""
        return self._whole("tolist()").tolist()

    def __repr__(self) -> str:
        return repr(self._whole("repr()"))

    def __str__(self) -> str:
        return str(self._whole("str()"))

    def __format__(self, form: str) -> str:
        return format(self._read("format()"), form) if form else str(self)

    def _whole(self, name: str) -> np.ndarray:
        self._gpu.download(name, self._data.nbytes)
        return self._data
