"""Causes, repairs and numbers of a model's diagnosis. The English of the first two is that of `analysis.model`."""

from __future__ import annotations

from depthscope.analysis.model import CAUSES
from depthscope.analysis.model.words import repair

_CAUSES = {
    "gain too small": "权重的初始离散程度过小",
    "gain too large": "权重的初始离散程度过大",
    "plain batch norm": "深层网络使用批归一化却没有捷径",
    "unscaled branches": "捷径没有归一化，支路也未随深度缩小",
    "branch scale": "某一支路远大于其同类",
    "missing skip": "某一块缺少其同类所有的残差相加",
    "missing norm": "某一块缺少其同类所有的归一化",
    "norm on the trunk": "某一块对主干本身做归一化，而其同类只归一化支路",
    "dead layer": "某层的单元在所有样本上都不激活，或其权重为 0",
    "frozen block": "可训练块之间有一块不参与训练",
    "uncalled block": "同类都在使用，唯有一块从未被调用",
    "gradient cut": "某块在 no_grad 下运行或被 detach",
    "saturating activation": "激活函数处处斜率很小，或已饱和",
    "non-finite values": "出现非有限数值",
    "learning rate": "损失发散或振荡",
    "no generalisation": "训练损失下降而验证损失不降",
    "stalled": "损失没有变化",
    "collapsed representation": "深层把所有样本映到少数几个方向",
    "zero classifier": "最后一层为 0，梯度无法通过",
    "too few blocks": "首段与末段之间不足 3 个块",
    "no gradient": "没有测得梯度",
    "non-finite input": "输入含有非有限数值",
    "one block": "某一块对梯度的作用与其余各块都不同",
    "not recognised": "原因未能识别",
    "": "没有发现问题",
}
_REPAIRS = {
    "gain too small": "按临界增益初始化，或加入捷径或归一化",
    "gain too large": "按临界增益初始化，或加入捷径或归一化",
    "plain batch norm": "加入捷径，或去掉归一化并按临界增益初始化",
    "unscaled branches": "把每条支路乘以 1/sqrt(L)，或令其从 0 开始（SkipInit、ReZero、Fixup），或在支路之前归一化",
    "branch scale": "把该支路调到与其余支路相同的大小",
    "missing skip": "像其余各块那样，把块的输入加到输出上",
    "missing norm": "补上其余各块所有的归一化",
    "norm on the trunk": "只归一化支路的输入，主干保持不变",
    "dead layer": "重新初始化该层的权重与偏置，并查明其来源",
    "frozen block": "为其参数设置 requires_grad，除非本意如此",
    "uncalled block": "在 forward 中调用该块，或将其删除",
    "gradient cut": "去掉该块外的 no_grad 或 detach",
    "saturating activation": "改用 ReLU 或 GELU，或令 tanh 的 sw2 = 1",
    "non-finite values": "找出该处溢出、除以 0 或对 0 取对数的运算",
    "learning rate": "降低学习率，或加入预热",
    "no generalisation": "检查标签是否对应；否则增加数据、数据增强或权重衰减",
    "stalled": "提高学习率，并确认优化器持有这些参数",
    "collapsed representation": "加入捷径，或使用正交权重",
    "zero classifier": "以 loss_fn=None 测量：随机余切方向绕过最后一层",
    "non-finite input": "清理该批数据",
    "one block": "先检查这一块",
}
_NUMBERS = {
    "rate": ("factor of the gradient a block", "每块的梯度倍数"),
    "total, decades": ("change over the body, powers of ten", "经过主体的变化（10 的幂次）"),
    "multiplier": ("multiplier", "倍数"),
    "usual multiplier": ("the others' (median)", "其余各块的倍数（中位数）"),
    "ratio": ("its |F|/|x|", "其 |F|/|x|"),
    "usual ratio": ("the others' |F|/|x| (median)", "其余各处的 |F|/|x|（中位数）"),
    "times its like": ("times the size of its like", "与同类大小之比"),
    "share": ("its share of all change", "占全部变化的比例"),
    "sw2": ("fan_in × variance of its weights", "fan_in × 权重方差"),
    "usual sw2": ("the others' fan_in × variance", "其余各层的 fan_in × 权重方差"),
    "theory": ("theory, a block", "每块的理论值"),
    "growth of |h|, decades": ("growth of |h|, powers of ten", "|h| 的增长（10 的幂次）"),
    "loss over ln K": ("loss over ln K", "损失与 ln K 之比"),
    "zeros": ("fraction of zeros", "零的比例"),
    "zeros before": ("fraction of zeros before it", "其前一层零的比例"),
    "values": ("values that are not finite", "非有限数值的个数"),
    "rank": ("effective rank", "有效秩"),
    "rank at first": ("effective rank at first", "最初的有效秩"),
    "rank at first over last": ("rank at first over last", "最初与最后的秩之比"),
}

DIAGNOSIS: dict[str, tuple[str, str]] = {
    **{f"cause.{code}": (CAUSES[code], chinese) for code, chinese in _CAUSES.items()},
    **{f"repair.{code}": (repair(code), chinese) for code, chinese in _REPAIRS.items()},
    **{f"number.{name}": both for name, both in _NUMBERS.items()},
}
"""key: (en, zh)."""
