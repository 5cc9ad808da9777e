"""A study of a second, with a claim of each verdict, for tests that need any finished study and its page."""

from __future__ import annotations

SMALL = """
name = "small"
title = { en = "Small", zh = "小" }
seeds = 2
[base]
backend = "numpy"
family = "mlp"
activation = "tanh"
width = 4
init = "gaussian"
data = "spiral"
data_options = { points_per_arm = 8 }
optimizer = "adam"
lr = 0.01
steps = 10
[parts.main]
axes = { depth = [2, 4] }
base = { measures = ["layers"] }
arms = [{ name = "plain" }, { name = "residual", set = { shortcut = "identity" } }]
[parts.gradcheck]
base = { depth = 2, steps = 0, precision = "float64", measures = ["gradcheck"] }
arms = [{ name = "plain" }]
[[claims]]
name = "holds"
text = { en = "No loss is above a hundred.", zh = "损失都不超过一百。" }
part = "main"
metric = "train_loss"
kind = "level"
cells = [{ arm = "plain" }, { arm = "residual" }]
statistic = "every_seed"
expect = "at_most"
than = 100.0
[[claims]]
name = "does-not"
text = { en = "Every loss is above a hundred.", zh = "损失都超过一百。" }
part = "main"
metric = "train_loss"
kind = "level"
cells = [{ arm = "plain" }]
statistic = "every_seed"
expect = "at_least"
than = 100.0
[[claims]]
name = "open"
text = { en = "Two seeds have no interval of their median.", zh = "两个种子没有中位数的区间。" }
part = "main"
metric = "train_loss"
kind = "level"
cells = [{ arm = "plain" }]
statistic = "median"
expect = "at_most"
than = 100.0
"""
