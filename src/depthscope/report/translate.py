"""Reason and remedy of a run that did not complete, in the page's language; a record holds them in English.

Names of exceptions, functions and fields are code and have no translation. What is not known here,
such as the message of an exception, stays as it is.
"""

from __future__ import annotations

import re

from depthscope.report.strings import Lang

_PHRASES = (
    (r"training loss (\S+) at step (\d+)", "第 {1} 步的训练损失为 {0}"),
    (r"a smaller lr, a longer warm-up, or a normaliser", "减小 lr、延长预热，或加入归一化"),
    (r"a smaller lr, a longer warm-up, or clipped gradients", "减小 lr、延长预热，或裁剪梯度"),
    (r"a smaller lr or a longer warm-up", "减小 lr 或延长预热"),
    (r"at step (\d+) the gradient of (\S+) had no finite norm", "第 {0} 步 {1} 的梯度范数非有限"),
    (
        r"at step (\d+) the gradients of (\d+) of (\d+) tensors, (\S+) nearest to the output, had no finite norm",
        "第 {0} 步 {2} 个张量中有 {1} 个的梯度范数非有限，其中 {3} 最接近输出",
    ),
    (
        r"gradients that do not grow with depth: a shortcut, fewer layers, another initialiser",
        "使梯度不随深度增长：加入捷径、减少层数或换用其他初始化",
    ),
    (r"a smaller lr or a longer warm-up may do too", "减小 lr 或延长预热或许也可以"),
    (r"another initialiser", "换用其他初始化"),
    (r"a normaliser", "加入归一化"),
    (r"branches that are scaled down", "缩小支路"),
    (r"inputs and targets of a smaller scale", "缩小输入与目标的尺度"),
    (r"the lr has no part in it", "与 lr 无关"),
    (r"the shallower network of (\d+) layers did not train", "{0} 层的浅层网络未能训练完成"),
    (r"mend what the reason names", "修复原因所指的问题"),
    (r"the same command does this run again", "同一命令会重做这次运行"),
)


def phrases(text: str | None, lang: Lang) -> str:
    """Phrases joined by semicolons, each by itself.

    >>> phrases("training loss nan at step 17", "zh"), phrases(None, "zh"), phrases("x; y", "en")
    ('第 17 步的训练损失为 nan', '', 'x; y')
    """
    if not text or lang == "en":
        return text or ""
    return "；".join(_phrase(each) for each in text.split("; "))


def _phrase(text: str) -> str:
    for pattern, chinese in _PHRASES:
        match = re.fullmatch(pattern, text)
        if match:
            return chinese.format(*match.groups())
    return text
