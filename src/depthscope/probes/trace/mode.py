"""The dispatch mode that records one forward pass as a `Graph`.

It holds no activation: a tensor is known by the address of its C++ part together with a weak reference, which keeps
that address from being given to another tensor but lets the numbers go. Memory under several tensors (views)
is known by its storage in the same way, so that a write through a view is seen by all that look at it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from depthscope.probes.mode import Mode
from depthscope.probes.trace.classify import Classifier, Operand
from depthscope.probes.trace.graph import Call, Graph, Step
from depthscope.probes.trace.ops import OpInfo, info_of
from depthscope.probes.trace.outputs import tensors_of
from depthscope.probes.trace.tensors import Region, tensor_arguments

_weak_tensor: Callable[[Tensor], Any] = torch._C._WeakTensorRef  # type: ignore[attr-defined]
_DETACH = torch.ops.aten.detach.default


class Recorder(Mode):
    """Record what a model does between entering and leaving.

    Args:
        model: without wrappers; its parameters and modules give the names.
        inputs: tensors that will be passed to it.
    """

    def __init__(self, model: nn.Module, inputs: Iterator[Tensor]) -> None:
        super().__init__()
        self.graph = Graph()
        self.funcs: list[Any] = []
        self.used: set[str] = set()
        self._model = model
        self._thread = threading.get_ident()
        self._modules = {id(module): (name, module) for name, module in model.named_modules() if module is not model}
        self._times: dict[int, int] = {}
        self._open: list[int] = []
        self._alive: list[Any] = []
        self._known: dict[int, tuple[int, int, int]] = {}  # tensor -> value, storage, writes seen
        self._written: dict[int, list[tuple[int, Region]]] = {}  # storage -> value and place of each write
        self._latest: dict[int, int] = {}  # storage -> last value seen in it
        self._consumed: dict[int, frozenset[str]] = {}  # value that is no data -> parameters that it is made of
        self._fixed: set[int] = set()
        self.classify = Classifier()
        for name, parameter in model.named_parameters():
            value = self._add(parameter, data=False)
            self._consumed[value] = frozenset([name])
            self._fixed.add(parameter._cdata)
        for buffer in model.buffers():
            if buffer._cdata not in self._known:
                self._add(buffer, data=False)
            self._fixed.add(buffer._cdata)
        for tensor in inputs:
            if tensor._cdata not in self._known:
                self.graph.inputs.append(self._add(tensor, data=True))
        self._unborn = set(self.graph.inputs)  # values that no operation gives

    # -- tensors and their values

    def _add(self, tensor: Tensor, *, data: bool, deep: bool = False, step: int = -1) -> int:
        floating = tensor.is_floating_point() or tensor.is_complex()
        value = self.graph.value(tuple(tensor.shape), floating=floating, data=data, deep=deep, step=step)
        self._learn(tensor, value)
        return value

    def _learn(self, tensor: Tensor, value: int) -> None:
        storage = self._storage(tensor)
        if tensor._cdata not in self._known:
            self._alive.append(_weak_tensor(tensor))
        self._known[tensor._cdata] = (value, storage, len(self._written.get(storage, ())))
        if storage:
            before = self._latest[storage]
            if before < 0 or tensor.numel() >= math.prod(self.graph.shape[before]):
                self._latest[storage] = value

    def _storage(self, tensor: Tensor) -> int:
        """Address of the memory that a tensor lies in; 0 where it has none of its own (sparse)."""
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return 0
        address = int(storage._cdata)
        if address and address not in self._latest:
            self._alive.append(StorageWeakRef(storage))  # type: ignore[no-untyped-call]
            self._latest[address] = -1
        return address

    def value_of(self, tensor: Tensor) -> int:
        """The value that a tensor now has."""
        known = self._known.get(tensor._cdata)
        if known is None:  # a constant, or made without an operation (`.data`): what lies in its memory
            storage = self._storage(tensor)
            value = self._latest.get(storage, -1)
            if value < 0:
                return self._add(tensor, data=False)
            self._learn(tensor, value)
            return value
        value, storage, seen = known
        writes = self._written.get(storage, ())
        if len(writes) == seen:
            return value
        here = Region.of(tensor)
        news = [(each, region) for each, region in list(writes)[seen:] if not region.apart(here)]
        if news and news[-1][1] == here:
            value = news[-1][0]
        elif news:
            value = self._join((value, *(each for each, _ in news)), tensor)
        self._known[tensor._cdata] = (value, storage, len(writes))
        return value

    def _join(self, values: tuple[int, ...], tensor: Tensor) -> int:
        graph = self.graph
        last = graph.producer[values[-1]]
        call = graph.steps[last].call if last >= 0 else self._call()
        step = Step(op=-1, base="join", name="write", sort="shape", inputs=values, outputs=(), call=call)
        value = graph.value(
            tuple(tensor.shape),
            floating=tensor.is_floating_point() or tensor.is_complex(),
            data=any(graph.data[each] for each in values),
            deep=any(graph.deep[each] for each in values),
            step=len(graph.steps),
        )
        step.outputs = (value,)
        self._unborn.add(value)
        if graph.data[value]:
            graph.steps.append(step)
        else:
            graph.producer[value] = -1
        self._consumed[value] = self._parameters(values) if not graph.data[value] else frozenset()
        return value

    def _parameters(self, values: tuple[int, ...]) -> frozenset[str]:
        return frozenset().union(*(self._consumed.get(each, frozenset()) for each in values))

    # -- operations

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if threading.get_ident() != self._thread:
            return func(*args, **kwargs)
        info = info_of(func)
        operands = [Operand(tensor, self.value_of(tensor)) for tensor in tensor_arguments(args, kwargs)]
        written = _written(info, args, kwargs)
        number = len(self.funcs)
        if func is not _DETACH:
            self.funcs.append(func)
        out = func(*args, **kwargs)
        with torch.no_grad():
            self._record(info, number if func is not _DETACH else -1, operands, written, args, kwargs, out)
        return out

    def _record(
        self,
        info: OpInfo,
        number: int,
        operands: list[Operand],
        written: list[Tensor],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        out: Any,
    ) -> None:
        graph = self.graph
        for each in operands:
            each.data = graph.data[each.value]
            each.parameters = self._consumed.get(each.value, frozenset())
            self.used.update(each.parameters)
        step = Step(
            op=number,
            base=info.base,
            name=info.name,
            sort=info.sort,
            inputs=tuple(each.value for each in operands),
            outputs=(),
            call=self._call(),
        )
        outs = list(tensor_arguments((out,), {}))
        data = info.sort != "fresh" and any(each.data for each in operands)
        if data:
            step.weights = tuple(sorted(frozenset().union(*(each.parameters for each in operands if not each.data))))
        module = self._modules_open()
        self.classify(step, info, operands, args, kwargs, outs, module)
        deep = data and (step.weighted or any(graph.deep[each] for each in step.inputs))
        parameters = frozenset() if data else self._parameters(step.inputs)
        outputs = []
        index = len(graph.steps)
        changed = {tensor._cdata for tensor in written}
        for tensor in [*outs, *(each for each in written if all(each is not other for other in outs))]:
            if tensor._cdata in self._fixed and tensor._cdata in changed:
                continue  # running statistics: what is written into a buffer is no path of the data
            if tensor._cdata in changed:
                value = self._write(tensor, data=data, deep=deep, step=index)
            elif (known := self._known.get(tensor._cdata)) is not None and known[0] in step.inputs:
                continue  # an input handed back
            else:
                value = self._add(tensor, data=data, deep=deep, step=index)
            outputs.append(value)
            if not data and parameters:
                self._consumed[value] = parameters
        step.outputs = tuple(outputs)
        for at, tensor in enumerate(outs):
            value = self._known[tensor._cdata][0] if tensor._cdata in self._known else -1
            if value in step.outputs:
                graph.slots.setdefault(value, at)
        if number >= 0:
            for at, each in enumerate(operands):
                if each.value in self._unborn:
                    graph.first_use.setdefault(each.value, (number, at))
        if data:
            graph.steps.append(step)
        else:
            for value in outputs:
                graph.producer[value] = -1

    def _write(self, tensor: Tensor, *, data: bool, deep: bool, step: int) -> int:
        """A new value of a tensor that was changed in place, seen by every tensor in its memory."""
        value = self._add(tensor, data=data, deep=deep, step=step)
        storage = self._known[tensor._cdata][1]
        if storage:
            self._written.setdefault(storage, []).append((value, Region.of(tensor)))
            self._known[tensor._cdata] = (value, storage, len(self._written[storage]))
        return value

    # -- modules

    def _call(self) -> int:
        return self._open[-1] if self._open else -1

    def _modules_open(self) -> str:
        return self.graph.calls[self._open[-1]].kind if self._open else type(self._model).__name__

    @contextmanager
    def named(self) -> Iterator[None]:
        """Follow the calls of modules by hooks that lie on none of them, so that no model sees one."""
        before = register_module_forward_pre_hook(self._enter)
        after = register_module_forward_hook(self._leave, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()

    def _enter(self, module: nn.Module, args: Any) -> None:
        found = self._modules.get(id(module))
        if found is None or threading.get_ident() != self._thread:
            return
        name, _ = found
        times = self._times.get(id(module), 0)
        self._times[id(module)] = times + 1
        label = f"{name}#{times}" if times else name
        self.graph.calls.append(
            Call(
                label=label,
                module=name,
                kind=type(module).__name__,
                first=len(self.graph.steps),
                parent=self._call(),
            )
        )
        self._open.append(len(self.graph.calls) - 1)

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        if id(module) not in self._modules or threading.get_ident() != self._thread or not self._open:
            return
        call = self.graph.calls[self._open.pop()]
        for at, tensor in enumerate(tensors_of(output)):
            value = self.value_of(tensor)
            if self.graph.producer[value] < call.first:
                continue  # handed through
            if at == 0:
                self.graph.given[value] = call.label
            else:  # such as the list of all hidden states: each keeps the name of the layer that made it
                self.graph.given.setdefault(value, call.label)


def _written(info: OpInfo, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Tensor]:
    found = [args[at] for at in info.writes if at < len(args)]
    found += [item for name, item in kwargs.items() if name in info.write_names]
    return list(tensor_arguments(tuple(found), {}))
