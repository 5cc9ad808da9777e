"""What was recognised in a model: its operations, boundary tensors, blocks, residual additions, parameters.

The structure is read off one traced forward pass of the model (`probes.trace`), so it is that of the
computation and not of the code. It is plain data: `analysis` judges with it, `report` draws it.

    input -- block 0 (stem) -- x_0 -- block 1 -- x_1 -- ... -- x_L -- last block (head) -- output

A **boundary** is a tensor through which everything that depends on the input flows. Between two of them
lies a **block**, the least piece that holds a weight: a layer of a plain network (with its normaliser and
its activation), a residual block of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

OpKind = Literal[
    "linear",
    "conv",
    "embedding",
    "recurrent",
    "attention",
    "norm",
    "activation",
    "scale",
    "residual",
    "gate",
    "concat",
    "pool",
    "dropout",
    "other",
]
"""What an operation does to the data.

`scale` multiplies by a constant or by a learned scalar or vector; `residual` is a residual addition, `gate` a
product of two tensors that both depend on the input; `other` is all that is neither recognised nor mere shape.
"""
OP_KINDS: tuple[OpKind, ...] = get_args(OpKind)

Role = Literal["stem", "body", "head"]
Status = Literal["ok", "no grad", "frozen", "unused", "shared"]
STATUSES: Mapping[Status, str] = {
    "ok": "a gradient reached it",
    "no grad": "used and trainable, but no gradient reached it",
    "frozen": "requires_grad is False",
    "unused": "no operation of the forward pass took it",
    "shared": "another name of a parameter that is listed already",
}
"""Of a parameter, with its meaning."""


@dataclass(frozen=True, kw_only=True)
class Op:
    """One operation on the path of the data.

    Attributes:
        kind: what it does.
        name: which one: `relu`, `tanh`, `gelu` of activations; `batch`, `layer`, `group`, `rms`, `instance`
            of normalisers; `max`, `mean` of pools; else the operation's own name, such as `addmm`.
        module: fully qualified name of the innermost module that ran it; empty for the model itself.
        weights: names of the parameters that it takes, as `named_parameters` has them.
        facts: numbers recognised about it, where they apply: `fan_in`, `fan_out`; `sw2`, fan_in times the
            variance of the weight's entries about their mean; `sb2`, the mean square of its bias; `orthogonality`,
            |W^T W - c I| / |W^T W| by Frobenius for the best c (0 for an orthogonal or delta-orthogonal weight);
            `value`, mean of the factor of a `scale` and of the gamma of a `norm`; `training`, 1 where a batch
            norm uses the batch's statistics; `slope`, of a leaky ReLU; `p`, of a dropout; `group_size`.
    """

    kind: OpKind
    name: str
    module: str = ""
    weights: tuple[str, ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Boundary:
    """A tensor through which everything flows.

    Attributes:
        index: position from the input, from 0.
        name: the outermost module below the model that gives it, `#k` appended for its k-th call (from 1, the
            second call); where no module gives it, the module in which it arises, a colon and the operation:
            `h.0:add`; for the model's own code the last module before it that has a layer: `layers.3:relu`.
            `input` and `output` for the ends of the model.
        shape: of one example.
    """

    index: int
    name: str
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ResidualAddition:
    """An addition skip(x) + F(x) to an earlier tensor.

    Attributes:
        index: position from the input, from 0.
        name: as a boundary's where its result is one; else likewise.
        block: index of the block that it lies in.
        branch: what F does, in order.
        skip: what the other operand does; empty where it is x itself.
    """

    index: int
    name: str
    block: int
    branch: tuple[Op, ...]
    skip: tuple[Op, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Block:
    """What lies between two neighbouring boundaries.

    Attributes:
        index: position from the input; it runs from boundary `index` to boundary `index + 1`.
        name: of the boundary at its end.
        role: `stem` for the first where it changes the data's shape or reads it from integers; `head` for the last
            where it changes the shape; else `body`.
        ops: all its operations in the order of execution, those of branches too, shape alone left out.
        additions: indices of the residual additions in it.
        weights: names of its parameters, in order.
    """

    index: int
    name: str
    role: Role
    ops: tuple[Op, ...]
    additions: tuple[int, ...] = ()
    weights: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of the model, under the first of its names.

    Attributes:
        name: fully qualified.
        shape: of the tensor.
        aliases: its other names: tied weights are counted once.
        trainable: its `requires_grad`.
        used: whether an operation of the forward pass took it.
    """

    name: str
    shape: tuple[int, ...]
    aliases: tuple[str, ...] = ()
    trainable: bool = True
    used: bool = True


@dataclass(frozen=True, kw_only=True)
class Structure:
    """All that was recognised.

    Attributes:
        boundaries: from the input to the output; one more than blocks.
        blocks: in order.
        additions: residual additions, in the order of execution.
        num_concatenations: concatenations of tensors that depend on the input (DenseNet, Inception).
        num_gates: products of two tensors that both depend on the input through parameters, at an activation's
            (Highway, LSTM, GLU, squeeze-and-excitation); the activation x sigmoid(x) is none.
        parameters: each once.
    """

    boundaries: tuple[Boundary, ...]
    blocks: tuple[Block, ...]
    additions: tuple[ResidualAddition, ...] = ()
    num_concatenations: int = 0
    num_gates: int = 0
    parameters: tuple[Parameter, ...] = ()

    @property
    def body(self) -> tuple[Block, ...]:
        """The blocks between stem and head, from x_0 to x_L."""
        return tuple(block for block in self.blocks if block.role == "body")

    @property
    def num_parameters(self) -> int:
        """Numbers in all parameters, tied ones once."""
        total = 0
        for parameter in self.parameters:
            size = 1
            for length in parameter.shape:
                size *= length
            total += size
        return total
