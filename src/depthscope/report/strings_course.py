"""Sentences of the page of a watched training."""

from __future__ import annotations

COURSE: dict[str, tuple[str, str]] = {
    "course.step": ("step", "步数"),
    "course.training": ("training loss", "训练损失"),
    "course.validation": ("validation loss", "验证损失"),
    "course.losses_section": ("How training went", "训练过程"),
    "course.losses_caption": (
        "The losses that the loop told, by step; a curve ends where it is not finite.",
        "训练循环所报告的损失随步数的变化；出现非有限值处曲线终止。",
    ),
    "course.multipliers_section": ("The gradient's multipliers over training", "梯度倍数随训练的变化"),
    "course.multipliers_title": ("multiplier", "倍数"),
    "course.multipliers_caption": (
        "A row a block, the input at the foot; a column a recorded step, side by side whatever lies between. Pale: the "
        "block leaves the gradient's norm alone; blue: it shrinks it; red: it enlarges it. A gap was not measured.",
        "每行一个块，输入在最下；每列一个记录的步，等距排列。浅色：该块不改变梯度范数；蓝色：使其减小；"
        "红色：使其增大。空白处未测量。",
    ),
    "course.ratios_section": ("Branch against skip over training", "支路与捷径之比随训练的变化"),
    "course.ratios_title": ("|F|/|x| (branch over skip)", "|F|/|x|（支路与捷径之比）"),
    "course.ratios_caption": (
        "|F|/|x| at each block's addition. Pale: branch and skip are alike; blue: the skip outweighs; red: the branch "
        "does.",
        "每个块相加处的 |F|/|x|。浅色：支路与捷径相当；蓝色：捷径占优；红色：支路占优。",
    ),
    "course.describe": (
        "{what} of each block over {n} recorded steps, by colour.",
        "以颜色表示 {n} 个记录步中每个块的{what}。",
    ),
    "course.left_out": (
        "Cells that are zero or not finite are left blank: {n}.",
        "为零或非有限的格子留空：{n} 个。",
    ),
}
"""key: (en, zh)."""
