"""The dispatch mode that others are made of: it loads no compiler for a model that has none."""

from __future__ import annotations

import sys
from typing import Any, ClassVar, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class is untyped
    """Sees every operation of torch while it is entered. A subclass writes `__torch_dispatch__`.

    Newer versions of torch keep their compiler out of a mode's code by loading it at the first operation, which takes
    seconds, and by a check at each one. Here that is put off until something has loaded the compiler anyhow.
    """

    supports_higher_order_operators = True
    eager_only: ClassVar[bool] = False
    """It is entered only where nothing is compiled, as within `as_found`: there is nothing to keep out."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __enter__(self) -> Self:
        cls: Any = type(self)
        if not cls.eager_only and "torch._dynamo" in sys.modules and not vars(cls).get("_hidden", False):
            hide: Any = vars(torch)["_disable_dynamo"]
            cls.__torch_dispatch__ = hide(cls.__torch_dispatch__, recursive=True)
            cls._hidden = True
        super().__enter__()  # type: ignore[no-untyped-call]
        return self
