"""What the page says of the loss along the step, and of its sharpness in training."""

from __future__ import annotations

CURVATURE: dict[str, tuple[str, str]] = {
    "step_section": ("Along the step", "沿着这一步"),
    "step_caption": (
        "At some steps of the training the weights are moved against the gradient of one batch, by half the learning "
        "rate of that step to four times it, and the loss and its gradient are looked at on the way. The band is what "
        "they range over; the effective smoothness is the largest change of the gradient over the distance moved. "
        "Lower and narrower is smoother. Means over seeds. Arms with other learning rates look as far as their own.",
        "在训练的若干步上，沿一个批次的梯度的反方向移动权重，移动量为该步学习率的一半到四倍，并观察途中的损失及其梯度。"
        "色带是它们的取值范围；有效光滑度是梯度的最大变化与移动距离之比。越低、越窄则越光滑。"
        "数值为各随机种子的均值。学习率不同的组别，各自只看到自己的范围。",
    ),
    "step_loss": ("loss on the way", "途中的损失"),
    "step_change": ("|change of the gradient| on the way", "途中梯度的变化量"),
    "step_smoothness": ("effective smoothness", "有效光滑度"),
    "step_describe": (
        "{what} by step of the training, {where}: {arms}.",
        "{what}随训练步数的变化，{where}：{arms}。",
    ),
    "step_lowest": ("lowest", "最低"),
    "step_highest": ("highest", "最高"),
    "step_ends": (
        "Of {count} values of the axis, the first and the last.",
        "轴上共 {count} 个取值，这里是第一个和最后一个。",
    ),
    "step_infinite": (
        "Where the loss or its gradient overflowed on the way, at {count} {count:point|points}, nothing is drawn.",
        "途中损失或其梯度溢出之处（{count} 处）没有画出。",
    ),
    "sharpness_section": ("Sharpness", "锐度"),
    "sharpness_caption": (
        "The largest eigenvalue of the Hessian of the loss, of the batch that layers are measured on, in training "
        "mode. The dashed line is the edge of stability: on a loss that is more curved than that, gradient descent at "
        "the learning rate of that step does not come to rest. It stands at {edge}. Cohen et al. (2021) saw descent on "
        "all examples at once rise to it and stay there, and descent on batches stay below.",
        "损失的海森矩阵的最大特征值，取自测量各层所用的批次，训练模式。虚线是稳定性边缘：损失的曲率超过它时，"
        "以该步学习率进行的梯度下降无法稳定下来。其值为 {edge}。Cohen 等人（2021）观察到：对全部样本做梯度下降时，"
        "锐度升到该线并停留；分批下降时则停在其下。",
    ),
    "sharpness_caption_no_edge": (
        "The largest eigenvalue of the Hessian of the loss, of the batch that layers are measured on, in training "
        "mode. It has no bound to be read against here: the optimiser scales its gradients, or parameters have "
        "learning rates of their own.",
        "损失的海森矩阵的最大特征值，取自测量各层所用的批次，训练模式。这里没有可对照的界：优化器会缩放梯度，"
        "或参数各有自己的学习率。",
    ),
    "sharpness_edge": ("edge of stability", "稳定性边缘"),
    "sharpness_y": ("largest eigenvalue", "最大特征值"),
    "edge_plain": ("2 / learning rate", "2 / 学习率"),
    "edge_momentum": ("(2 + 2 × momentum) / learning rate", "(2 + 2 × 动量) / 学习率"),
    "edge_decay": ("{bound}, less the weight decay", "{bound} 减去权重衰减"),
    "gloss.smoothness": ("effective smoothness", "有效光滑度"),
    "gloss.smoothness.text": (
        "How fast the gradient turns as the weights move against it: the largest change of the gradient over the "
        "distance. A small one means that a gradient still holds a step further on.",
        "权重沿梯度反方向移动时梯度变化的快慢：梯度的最大变化与距离之比。数值小，说明走一步之后梯度仍然可信。",
    ),
    "gloss.sharpness": ("sharpness", "锐度"),
    "gloss.sharpness.text": (
        "The largest eigenvalue of the Hessian: how strongly the loss curves in its most curved direction.",
        "海森矩阵的最大特征值：损失在弯曲最厉害的方向上的曲率。",
    ),
}
"""key: (en, zh)."""
