"""What the page calls otherwise where depth is a number of steps in time, and the words of recurrent networks."""

from __future__ import annotations

TIME: dict[str, tuple[str, str]] = {
    "x_depth.time": ("depth (steps in time)", "深度（时间步）"),
    "x_layer.time": ("step in time, first to last, then the head", "时间步（从最早到最后，之后是输出层）"),
    "layers_deep.time": ("{depth} {depth:step|steps} in time", "{depth} 个时间步"),
    "profile_section.time": ("Step by step through time", "逐时间步观察"),
    "profile_caption.time": (
        "One value a step in time, from the first (left) to the last, behind which the head reads the state: the "
        "distance from the right is how long ago it was. The axis is logarithmic and does not move with the training "
        "step. Lines are medians over seeds, bands reach from the smallest seed to the largest.",
        "每个时间步一个数值，从最早（左）到最后，之后由输出层读取状态：到右端的距离就是时间距离。对数坐标不随训练步变化。"
        "线为各随机种子的中位数，色带从最小值到最大值。",
    ),
    "quantity.dh_norm.time": (
        "|dL/dh|, gradient at the carried state (of an LSTM, its cell c)",
        "|dL/dh|，所携带状态处的梯度（LSTM 为细胞状态 c）",
    ),
    "quantity.h_norm.time": ("|h|, the carried state", "|h|，所携带的状态"),
    "quantity.f_over_x.time": ("|F|/|x|, what a step adds over what it carries", "|F|/|x|，一步所加与所携带之比"),
    "metric.dh_factor_first.time": ("|dL/dh| factor per step in time, step 0", "每时间步 |dL/dh| 倍数，第 0 步"),
    "metric.dh_factor_last.time": ("|dL/dh| factor per step in time, last step", "每时间步 |dL/dh| 倍数，最后一步"),
    "recipe.family.recurrent": (
        "recurrent, unrolled; depth counts steps in time",
        "循环网络，沿时间展开；深度为时间步数",
    ),
    "recipe.depth.recurrent": ("{value} {value:step|steps} in time", "{value} 个时间步"),
    "recipe.width.recurrent": ("a state of {value} units", "状态为 {value} 个单元"),
    "arms.field.model_options.cell": ("cell", "循环单元"),
    "arms.field.model_options.readout": ("which states the head reads", "输出层读取哪些状态"),
    "arms.field.model_options.forget_bias": ("initial bias of an LSTM's forget gate", "LSTM 遗忘门的初始偏置"),
}
"""key: (en, zh)."""
