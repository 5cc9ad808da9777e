"""Every sentence of the page and its figures, in each language: one table, and nothing outside it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = get_args(Lang)

# key: (en, zh). Braces are filled by `str.format`.
_TABLE: dict[str, tuple[str, str]] = {
    # The head
    "made_with": ("Measured with Depthscope {version}.", "由 Depthscope {version} 测得。"),
    "size": ("size: {size}", "规模：{size}"),
    "runs_count": ("{done} of {total} runs", "{total} 次运行中的 {done} 次"),
    "seeds_count": ("{n} seeds", "{n} 个随机种子"),
    "finding": ("The finding", "结论"),
    "no_headline": ("No claim could be judged yet.", "目前尚无可以判定的论断。"),
    "confirmatory": ("Declared beforehand as the one confirmatory claim", "事先声明的唯一验证性论断"),
    "partial": (
        "This page is partial: {missing} of {total} runs are missing. The command below does only what is missing.",
        "本页内容不完整：{total} 次运行中缺少 {missing} 次。下面的命令只会补做缺少的部分。",
    ),
    "contents": ("On this page", "本页目录"),
    # Arms
    "arms": ("What was compared", "比较的对象"),
    "arms_lead": (
        "Means over seeds with 95% intervals. Train and test figures come from a clean pass after the last step.",
        "各随机种子的均值与 95% 区间。训练与测试指标来自最后一步之后的一次完整评估。",
    ),
    "arms_all": ("All {count} cells", "全部 {count} 格"),
    "arm": ("arm", "组别"),
    "depth": ("depth", "深度"),
    "seed": ("seed", "随机种子"),
    "seeds": ("seeds", "种子数"),
    "parameters": ("parameters", "参数量"),
    "time": ("time per run", "每次运行耗时"),
    "of_planned": ("{done} of {planned}", "{done} / {planned}"),
    "metric.train_accuracy": ("train accuracy", "训练准确率"),
    "metric.test_accuracy": ("test accuracy", "测试准确率"),
    "metric.validation_loss": ("validation loss", "验证损失"),
    "metric.validation_accuracy": ("validation accuracy", "验证准确率"),
    "metric.train_loss": ("train loss (nats)", "训练损失（nats）"),
    "metric.test_loss": ("test loss (nats)", "测试损失（nats）"),
    "metric.train_accuracy_running": ("train accuracy, last epoch", "训练准确率（最后一轮）"),
    "metric.train_loss_running": ("train loss, last epoch (nats)", "训练损失（最后一轮，nats）"),
    "metric.dh_factor_first": ("|dL/dh| factor per layer, step 0", "每层 |dL/dh| 倍数，第 0 步"),
    "metric.dh_factor_last": ("|dL/dh| factor per layer, last step", "每层 |dL/dh| 倍数，最后一步"),
    "metric.dh_factor_change": ("change of the |dL/dh| factor by training", "训练引起的 |dL/dh| 倍数变化"),
    "metric.gradcheck_complex_median": ("median error, complex step", "误差中位数，复数步"),
    "metric.gradcheck_central_median": ("median error, central, h = 1e-4", "误差中位数，中心差分，h = 1e-4"),
    "metric.gradcheck_five_point_median": ("median error, five-point, h = 3e-3", "误差中位数，五点差分，h = 3e-3"),
    "no_interval": ("no interval", "无区间"),
    "arm_notes": ("Notes on the arms", "关于各组的说明"),
    # Figures
    "legend": ("arms", "组别"),
    "depth_section": ("What depth does to the result", "深度如何影响结果"),
    "depth_caption": (
        "Each small mark is one seed, each large one an estimate over seeds, with its 95% interval. "
        "Marks stand side by side so that none hides another; depths are {depths}.",
        "每个小标记是一个随机种子，每个大标记是各种子的估计值及其 95% 区间。"
        "标记并排放置以免相互遮挡；深度为 {depths}。",
    ),
    "depth_describe": (
        "{metric} against depth ({depths}), one line for each arm: {arms}.",
        "{metric}随深度（{depths}）的变化，每组一条线：{arms}。",
    ),
    "x_depth": ("depth (layers)", "深度（层）"),
    "estimate": ("estimate", "估计值"),
    "low": ("95% from", "95% 下限"),
    "high": ("95% to", "95% 上限"),
    "curves_section": ("How training went", "训练过程"),
    "curves_caption.train": (
        "Training {what} in clean passes over all training examples during training, one panel for each arm on a "
        "shared scale. Thin lines are seeds, strong lines their mean. Deeper is darker.",
        "训练过程中在全部训练样本上的{what}，每组一幅图，共用同一刻度。细线为各随机种子，粗线为均值；颜色越深，网络越深。",
    ),
    "curves_caption.train_running": (
        "Training {what} during training, averaged over each epoch's batches as they came, one panel for each arm "
        "on a shared scale. Thin lines are seeds, strong lines their mean. Deeper is darker.",
        "训练过程中的{what}（对每轮各批次取平均），每组一幅图，共用同一刻度。细线为各随机种子，粗线为均值；颜色越深，网络越深。",
    ),
    "curves_describe": (
        "Training {what} of {arm} during training, a line for each depth ({depths}).",
        "{arm}在训练过程中的{what}，每个深度（{depths}）一条线。",
    ),
    "loss": ("loss", "损失"),
    "accuracy": ("accuracy", "准确率"),
    "loss_nats": ("loss (nats)", "损失（nats）"),
    "epoch": ("epoch", "轮"),
    "step": ("step", "步"),
    "profile_section": ("Layer by layer", "逐层观察"),
    "profile_caption": (
        "One value a layer, from the input end (left) to the output end (right), on a logarithmic axis that does not "
        "move with the step. Lines are medians over seeds, bands reach from the smallest seed to the largest. "
        "Move over a line for the name of the layer.",
        "每层一个数值，从输入端（左）到输出端（右），对数坐标不随步数变化。线为各随机种子的中位数，色带从最小值到最大值。"
        "将指针移到线上可查看层的名称。",
    ),
    "profile_theory": (
        "The dotted line is what mean-field theory expects at initialisation, "
        "drawn from the measured value at the output end.",
        "虚线为平均场理论对初始化时的预期，以输出端的实测值为起点。",
    ),
    "profile_left_out": (
        "{count} values were zero or not finite and cannot stand on a logarithmic axis.",
        "有 {count} 个数值为零或非有限值，无法在对数坐标上显示。",
    ),
    "profile_thinned": (
        "{count} of {total} logged steps are on this page; the tables beside the records hold all of them.",
        "本页显示了 {total} 个记录步中的 {count} 个；完整数据见记录旁的数据表。",
    ),
    "profile_describe": (
        "{quantity} by layer in networks of {depth} layers, a line for each arm: {arms}.",
        "{depth} 层网络中逐层的{quantity}，每组一条线：{arms}。",
    ),
    "x_layer": ("layer, input to output", "层（从输入到输出）"),
    "layer": ("layer", "层"),
    "position": ("position", "位置"),
    "median": ("median", "中位数"),
    "worst": ("worst", "最大"),
    "lowest": ("lowest seed", "最小种子"),
    "highest": ("highest seed", "最大种子"),
    "theory": ("expected at initialisation", "初始化时的理论预期"),
    "quantity": ("Quantity", "量"),
    "depth_choice": ("Depth", "深度"),
    "training_step": ("Training step", "训练步"),
    "play": ("Play", "播放"),
    "pause": ("Pause", "暂停"),
    "step_last": ("last", "最后"),
    "layers_deep": ("{depth} layers", "{depth} 层"),
    "quantity.dh_norm": ("|dL/dh|, gradient at the layer's output", "|dL/dh|，层输出处的梯度"),
    "quantity.h_norm": ("|h|, the layer's output", "|h|，层的输出"),
    "quantity.dw_norm": ("|dW|, gradient of the weight", "|dW|，权重的梯度"),
    "quantity.dw_ratio": ("|dW|/|W|, relative to the weight", "|dW|/|W|，相对于权重"),
    "quantity.f_over_x": ("|F|/|x|, branch over skip", "|F|/|x|，支路与捷径之比"),
    "quantity.w_norm": ("|W|, the weight", "|W|，权重"),
    "quantity.h_mean_abs": ("mean |h|", "|h| 的均值"),
    "quantity.dh_mean_abs": ("mean |dL/dh|", "|dL/dh| 的均值"),
    "gradcheck_section": ("Is the backward pass right?", "反向传播正确吗？"),
    "gradcheck_caption": (
        "Relative error between the hand-derived gradient and differences of the loss, against the step size h; "
        "median over seeds. Finite differences lose digits to rounding as h shrinks; the complex step subtracts "
        "nothing and is drawn as a level line.",
        "手工推导的梯度与损失差分之间的相对误差随步长 h 的变化；取各随机种子的中位数。"
        "h 变小时有限差分因舍入而损失精度；"
        "复数步不含减法，画为水平线。",
    ),
    "gradcheck_describe": (
        "Relative error of the gradient against step size, {arm}, {depth} layers, by method.",
        "{arm}（{depth} 层）梯度的相对误差随步长的变化，按方法区分。",
    ),
    "gradcheck_exact": (
        "{count} errors were exactly zero and cannot stand on a logarithmic axis.",
        "有 {count} 个误差恰为零，无法在对数坐标上显示。",
    ),
    "method.central": ("central difference", "中心差分"),
    "method.five_point": ("five-point difference", "五点差分"),
    "method.complex": ("complex step", "复数步"),
    "x_h": ("step size h", "步长 h"),
    "y_error": ("relative error", "相对误差"),
    # Claims
    "claims_section": ("What was claimed, and what came of it", "论断与判定"),
    "claims_lead": (
        "Claims were declared in the study file before it ran. The shaded side agrees with the claim; the diamond is "
        "the estimate, the bar its 95% interval, small dots the single seeds.",
        "论断在运行之前已写入研究文件。阴影一侧与论断相符；菱形为估计值，横条为其 95% 区间，小点为各随机种子。",
    ),
    "claims_multiple": (
        "Claims not marked confirmatory are exploratory: their intervals are not corrected for their number.",
        "未标为验证性的论断均为探索性论断，其区间未作多重比较校正。",
    ),
    "verdict.supported": ("supported", "成立"),
    "verdict.refuted": ("refuted", "不成立"),
    "verdict.undecided": ("undecided", "尚无定论"),
    "difference_of": ("difference in {metric}", "{metric}之差"),
    "over_theory": ("measured over expected", "实测与理论之比"),
    "share_of_runs": ("share of runs that satisfy the claim", "满足论断的运行所占比例"),
    "tag_confirmatory": ("confirmatory", "验证性"),
    "tag_exploratory": ("exploratory", "探索性"),
    "margin.at_least": ("at least {margin}", "不低于 {margin}"),
    "margin.at_most": ("at most {margin}", "不高于 {margin}"),
    "margin.within": ("within {margin} of 1", "与 1 相差不超过 {margin}"),
    "claim_describe": (
        "{text}: {verdict}. Estimate {value}; claimed: {margin}.",
        "{text}：{verdict}。估计值 {value}；论断：{margin}。",
    ),
    "made_from": ("The estimates behind it", "所依据的估计"),
    "name": ("name", "名称"),
    "value": ("value", "数值"),
    "interval": ("95% interval", "95% 区间"),
    "method": ("method", "方法"),
    "each_seed": ("by seed", "各种子"),
    "not_estimated": ("no estimate", "无估计"),
    # Diagnosis, control, failures
    "diagnosis_section": ("Diagnosis", "诊断"),
    "control_section": ("What was held equal, and what was not", "哪些被控制，哪些没有"),
    "control_lead": (
        "“Same seed” is not “same weights”, so digests of what the arms share were recorded and compared.",
        "“相同的种子”并不等于“相同的权重”，因此记录并比较了各组共享内容的摘要。",
    ),
    "pair": ("{a} and {b}", "{a}与{b}"),
    "control.shared": (
        "all tensors that both have start exactly equal: {count}, on each of {seeds} seeds",
        "两者共有的 {count} 个张量在全部 {seeds} 个随机种子上起点完全相同",
    ),
    "control.some_shared": (
        "tensors that both have and that start exactly equal: {count}, on each of {seeds} seeds",
        "两者共有且起点完全相同的张量：{count} 个，在全部 {seeds} 个随机种子上",
    ),
    "control.differing": (
        "tensors that both have and that start otherwise: {count} ({names})",
        "两者共有但起点不同的张量：{count} 个（{names}）",
    ),
    "control.only_arm": ("tensors of the second alone: {count} ({names})", "仅后者拥有的张量：{count} 个（{names}）"),
    "control.only_baseline": (
        "tensors of the first alone: {count} ({names})",
        "仅前者拥有的张量：{count} 个（{names}）",
    ),
    "control.data.same": ("the same data", "数据相同"),
    "control.data.other": ("different data", "数据不同"),
    "control.order.same": ("the same examples in the same order, step by step", "每一步的样本及其顺序相同"),
    "control.order.other": ("batches in a different order", "批次顺序不同"),
    "control.order.full": ("all examples at once, at every step", "每一步都使用全部样本"),
    "control.augment.same": ("the same augmentation draws", "数据增强的随机抽取相同"),
    "control.augment.other": ("different augmentation draws", "数据增强的随机抽取不同"),
    "control.fields": ("differs by design: {fields}", "有意不同的设置：{fields}"),
    "control_untuned": (
        "Each arm was run with one recipe, and none was tuned for its arm: what is found holds for this recipe.",
        "每组只用一套配方运行，没有针对任何一组调参：结论只对该配方成立。",
    ),
    "failures_section": ("Runs that did not complete", "未完成的运行"),
    "status.diverged": ("diverged", "发散"),
    "status.failed": ("failed", "失败"),
    "and_more": ("and {count} more runs", "另有 {count} 次运行"),
    "status.missing": ("missing", "缺失"),
    "at_step": ("at step {step}", "第 {step} 步"),
    "remedy": ("Remedy", "建议"),
    "failures_lead": (
        "They are counted here and left out of every mean; no value was put in their place.",
        "它们仅在此列出，不计入任何均值，也没有用其他数值代替。",
    ),
    # Repeat and cite
    "repeat_section": ("Repeat it", "重复实验"),
    "repeat_lead": (
        "The same command continues a partial folder and does nothing where all is done.",
        "同一命令会继续未完成的文件夹；若已全部完成则不再运行。",
    ),
    "copy": ("Copy", "复制"),
    "copied": ("Copied", "已复制"),
    "provenance": ("Where the numbers were made", "数据来源环境"),
    "prov.depthscope": ("Depthscope", "Depthscope 版本"),
    "prov.python": ("Python", "Python 版本"),
    "prov.numpy": ("NumPy", "NumPy 版本"),
    "prov.torch": ("PyTorch", "PyTorch 版本"),
    "prov.platform": ("system", "系统"),
    "prov.processor": ("processor", "处理器"),
    "prov.device": ("device", "设备"),
    "prov.threads": ("threads per run", "每次运行的线程数"),
    "prov.study_digest": ("digest of the study", "研究摘要值"),
    "prov.started": ("runs started", "运行开始时间"),
    "prov.total_time": ("wall clock of all runs", "所有运行的总耗时"),
    "cite_section": ("What it rests on", "参考文献"),
    "cite_lead": ("BibTeX of just what this study used.", "本研究所用内容的 BibTeX。"),
    "noscript": (
        "The figures are drawn by JavaScript inside this file (nothing is loaded); tables and claims read without it.",
        "图由本文件内的 JavaScript 绘制（不加载任何外部内容）；表格与论断无需脚本即可阅读。",
    ),
    "offline": ("One file, no requests: it reads the same offline.", "单个文件，不发出任何请求：离线亦可阅读。"),
    "seconds": ("{value} s", "{value} 秒"),
    "minutes": ("{value} min", "{value} 分钟"),
    "hours": ("{value} h", "{value} 小时"),
}

STRINGS: Mapping[Lang, Mapping[str, str]] = MappingProxyType(
    {lang: MappingProxyType({key: texts[index] for key, texts in _TABLE.items()}) for index, lang in enumerate(LANGS)}
)
"""language -> key -> text."""
