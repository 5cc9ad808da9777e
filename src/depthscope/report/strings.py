"""Every sentence of the page and its figures, in each language: the tables here, and nothing outside them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

from depthscope.report.strings_arms import ARMS
from depthscope.report.strings_compare import COMPARE
from depthscope.report.strings_course import COURSE
from depthscope.report.strings_curvature import CURVATURE
from depthscope.report.strings_diagnosis import DIAGNOSIS
from depthscope.report.strings_judged import JUDGED
from depthscope.report.strings_landscape import LANDSCAPE
from depthscope.report.strings_model import MODEL
from depthscope.report.strings_pairing import PAIRING
from depthscope.report.strings_ranking import RANKING
from depthscope.report.strings_recipe import RECIPE
from depthscope.report.strings_texts import TEXTS
from depthscope.report.strings_time import TIME

Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = get_args(Lang)

# key: (en, zh). Braces are filled as by `str.format`; {n:seed|seeds} is the first where n is 1, else the second.
_TABLE: dict[str, tuple[str, str]] = {
    # The head
    "made_with": ("Measured with Depthscope {version}.", "由 Depthscope {version} 测得。"),
    "size": ("size: {size}", "规模：{size}"),
    "runs_count": ("{done} of {total} {total:run|runs}", "已完成 {done} / {total} 次"),
    "seeds_count": ("{n} {n:seed|seeds}", "{n} 个随机种子"),
    "finding": ("The finding", "结论"),
    "no_headline": ("No claim could be judged yet.", "目前尚无可以判定的论断。"),
    "no_claims": ("This study declares no claim.", "本研究没有声明论断。"),
    "partial": (
        "This page is partial: {missing} of {total} runs {missing:is|are} missing. The command below does only what is "
        "missing.",
        "本页内容不完整：{total} 次运行中缺少 {missing} 次。下面的命令只会补做缺少的部分。",
    ),
    "comma": (", ", "，"),
    "list": (", ", "、"),
    "colon": (": ", "："),
    "full_stop": (".", "。"),
    "aside": ("{text} ({more})", "{text}（{more}）"),
    "results_section": ("Results", "结果"),
    "contents": ("On this page", "本页目录"),
    # Arms
    "arms": ("What was compared", "比较的对象"),
    "arms_lead": (
        "Means over seeds, below each its {level} interval. Train and test figures come from a clean pass after the "
        "last step; those named “last epoch” are averages over the last epoch's batches as they came.",
        "各随机种子的均值，下方为其 {level} 区间。训练与测试指标来自最后一步之后的一次完整评估；"
        "标有“最后一轮”的是最后一轮各批次的平均值。",
    ),
    "arms_means": ("Means over seeds, below each its {level} interval.", "各随机种子的均值，下方为其 {level} 区间。"),
    "arms_all": ("All {count} cells", "全部 {count} 格"),
    "arm": ("arm", "组别"),
    "depth": ("depth", "深度"),
    "seed": ("seed", "随机种子"),
    "seeds": ("seeds", "种子数"),
    "parameters": ("parameters", "参数量"),
    "time": ("wall clock per run", "每次运行耗时"),
    "of_planned": ("{done} of {planned}", "{done} / {planned}"),
    "metric.train_accuracy": ("train accuracy", "训练准确率"),
    "metric.test_accuracy": ("test accuracy", "测试准确率"),
    "metric.validation_loss": ("validation loss", "验证损失"),
    "metric.validation_accuracy": ("validation accuracy", "验证准确率"),
    "metric.train_loss": ("train loss", "训练损失"),
    "metric.test_loss": ("test loss", "测试损失"),
    "metric.train_accuracy_running": ("train accuracy, last epoch", "训练准确率（最后一轮）"),
    "metric.train_loss_running": ("train loss, last epoch", "最后一轮的训练损失"),
    "metric.train_loss_first": ("loss of the first batch", "第一批的损失"),
    "metric.train_loss_change": ("change of the train loss by training", "训练引起的训练损失变化"),
    "metric.train_loss_start": ("train loss as constructed", "构造完成时的训练损失"),
    "metric.train_accuracy_start": ("train accuracy as constructed", "构造完成时的训练准确率"),
    "metric.train_loss_start_batch": ("the same, training mode", "同上，训练模式"),
    "metric.train_accuracy_start_batch": ("the same, training mode", "同上，训练模式"),
    "metric.construction_loss_change": ("change by the construction", "构造引起的损失变化"),
    "metric.construction_accuracy_change": ("change by the construction", "构造引起的准确率变化"),
    "metric.lesion_loss_change": ("loss without one branch, change", "去掉一个支路引起的损失变化"),
    "metric.lesion_accuracy_change": ("accuracy without one branch, change", "去掉一个支路引起的准确率变化"),
    "metric.landscape_roughness": ("roughness of the loss landscape", "损失景观的粗糙度"),
    "metric.landscape_rise": ("rise of the loss around (orders of magnitude)", "周围损失的上升（数量级）"),
    "metric.landscape_nonconvex_share": ("share of the loss landscape that curves down", "损失景观中向下弯曲的份额"),
    "metric.landscape_curvature_ratio": ("negative curvature over the largest", "负曲率与最大曲率之比"),
    "metric.dh_factor_first": ("|dL/dh| factor per layer, step 0", "每层 |dL/dh| 倍数，第 0 步"),
    "metric.dw_factor_first": ("|dW| factor per layer, step 0", "每层 |dW| 倍数，第 0 步"),
    "metric.dw_end_log_first": (
        "ln |dW| of the last layer before the head, step 0",
        "输出层之前最后一层的 ln |dW|，第 0 步",
    ),
    "metric.dh_factor_last": ("|dL/dh| factor per layer, last step", "每层 |dL/dh| 倍数，最后一步"),
    "metric.dh_factor_change": ("change of the |dL/dh| factor by training", "训练引起的 |dL/dh| 倍数变化"),
    "metric.gradcheck_complex_median": ("error (median over entries), complex step", "误差（条目中位数），复步法"),
    "metric.gradcheck_central_median": (
        "error (median over entries), central, h = 1e-4",
        "误差（条目中位数），中心差分，h = 1e-4",
    ),
    "metric.gradcheck_five_point_median": (
        "error (median over entries), five-point, h = 3e-3",
        "误差（条目中位数），五点差分，h = 3e-3",
    ),
    "no_interval": ("no interval", "无区间"),
    # Figures
    "legend": ("arms", "组别"),
    "chance": ("chance, {value}", "随机猜测，{value}"),
    "chance_at": ("{what}, {value}", "{what}，{value}"),
    "chance_loss.text": ("entropy of single characters", "单个字符的熵"),
    "chance_loss.classes": ("a guess", "随机猜测"),
    "chance_loss.regression": ("answering the mean", "总是回答均值"),
    "x_depth": ("depth (layers)", "深度（层）"),
    "x_depth.blocks": ("depth (blocks)", "深度（块）"),
    "estimate": ("estimate", "估计值"),
    "low": ("{level} from", "{level} 下限"),
    "high": ("{level} to", "{level} 上限"),
    "curves_section": ("How training went", "训练过程"),
    "curves_caption.train": (
        "Training {what} in clean passes over all training examples during training, one panel for each arm on "
        "shared scales. Thin lines are seeds; a strong line is their mean and ends where the first seed stops. "
        "The deeper, or larger, the darker.",
        "训练过程中在全部训练样本上的{what}，每组一幅图，横纵刻度均相同。"
        "细线为各随机种子；粗线为其均值，到最先停止的种子为止。取值越大（网络越深），颜色越深。",
    ),
    "curves_caption.train_running": (
        "Training {what} during training, averaged over each epoch's batches as they came, one panel for each arm on "
        "shared scales. Thin lines are seeds; a strong line is their mean and ends where the first seed stops. "
        "The deeper, or larger, the darker.",
        "训练过程中的{what}（对每轮各批次取平均），每组一幅图，横纵刻度均相同。"
        "细线为各随机种子；粗线为其均值，到最先停止的种子为止。取值越大（网络越深），颜色越深。",
    ),
    "curves_caption.full_batch": (
        "Training {what} during training, over all training examples at once, one panel for each arm on shared "
        "scales. Thin lines are seeds; a strong line is their mean and ends where the first seed stops early. "
        "The deeper, or larger, the darker.",
        "训练过程中一次使用全部训练样本的{what}，每组一幅图，横纵刻度均相同。"
        "细线为各随机种子；粗线为其均值，到最先停止的种子为止。取值越大（网络越深），颜色越深。",
    ),
    "curves_describe": (
        "Training {what} of {arm} during training, a line for each {axis} ({values}).",
        "{arm}在训练过程中的{what}，按{axis}（{values}）每个一条线。",
    ),
    "loss": ("loss", "损失"),
    "accuracy": ("accuracy", "准确率"),
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
        "点线为平均场理论对初始化时的预期，以输出端的实测值为起点。",
    ),
    "profile_left_out": (
        "{count} {count:value was|values were} zero or not finite and cannot stand on a logarithmic axis.",
        "有 {count} 个数值为零或非有限值，无法在对数坐标上显示。",
    ),
    "profile_thinned": (
        "{count} of {total} logged steps are on this page; the tables beside the records hold all of them.",
        "本页显示了 {total} 个记录步中的 {count} 个；完整数据见记录旁的数据表。",
    ),
    "profile_describe": (
        "{quantity} by layer, {where}, a line for each arm: {arms}.",
        "{where}时逐层的{quantity}，每组一条线：{arms}。",
    ),
    "x_layer": ("layer, input to output", "层（从输入到输出）"),
    "layer": ("layer", "层"),
    "position": ("position", "位置"),
    "median": ("median", "中位数"),
    "worst": ("worst", "最大"),
    "lowest": ("lowest seed", "最小种子"),
    "highest": ("highest seed", "最大种子"),
    "theory": ("expected at initialisation", "初始化时的理论预期"),
    "intact": ("intact network", "完整网络"),
    "intact_line": ("the intact network, on the same examples", "完整网络，同样的样本"),
    "theory_line": ("theory at initialisation, drawn from the output end", "初始化时的理论预期，以输出端为起点"),
    "quantity": ("Quantity", "量"),
    "depth_choice": ("Depth", "深度"),
    "training_step": ("Training step", "训练步"),
    "play": ("Play", "播放"),
    "pause": ("Pause", "暂停"),
    "step_last": ("last", "最后"),
    "layers_deep": ("{depth} {depth:layer|layers}", "{depth} 层"),
    "layers_deep.blocks": ("{depth} {depth:block|blocks}", "{depth} 个块"),
    "quantity.dh_norm": ("|dL/dh|, gradient at the layer's output", "|dL/dh|，层输出处的梯度"),
    "quantity.h_norm": ("|h|, the layer's output", "|h|，层的输出"),
    "quantity.dw_norm": ("|dW|, gradient of the weight", "|dW|，权重的梯度"),
    "quantity.dw_ratio": ("|dW|/|W|, relative to the weight", "|dW|/|W|，相对于权重"),
    "quantity.f_over_x": ("|F|/|x|, branch over skip", "|F|/|x|，支路与捷径之比"),
    "quantity.lesion_loss": ("training loss without this branch", "去掉该支路后的训练损失"),
    "quantity.lesion_accuracy": ("training accuracy without this branch", "去掉该支路后的训练准确率"),
    "quantity.block_lesion_loss": ("training loss without this block", "去掉该块后的训练损失"),
    "lesion_section": ("One branch taken out", "去掉一个支路"),
    "lesion_caption": (
        "The trained network without one of its residual branches, at the layer where that branch ended, on the first "
        "256 training examples or fewer, in evaluation mode; the intact network on the same examples is the dashed "
        "line. Lines are medians over seeds, bands reach from the smallest seed to the largest.",
        "训练好的网络去掉一个残差支路后的结果，画在该支路末端的层上；在前 256 个训练样本（或更少）上以评估模式测得；"
        "虚线为完整网络在同样样本上的结果。线为各随机种子的中位数，色带从最小值到最大值。",
    ),
    "lesion_blocks": (
        "A block with all its branches taken out is drawn where the last of them ended.",
        "去掉整个块（其全部支路）的结果画在最后一个支路末端的层上。",
    ),
    "quantity.w_norm": ("|W|, the weight", "|W|，权重"),
    "quantity.h_mean_abs": ("mean |h|", "|h| 的均值"),
    "quantity.dh_mean_abs": ("mean |dL/dh|", "|dL/dh| 的均值"),
    "gradcheck_section": ("Is the backward pass right?", "反向传播正确吗？"),
    "gradcheck_caption": (
        "Relative error between the hand-derived gradient and differences of the loss, against the step size h; "
        "median over seeds, for the median and for the worst (the largest error) of the entries compared. "
        "The complex step is drawn as a level line.",
        "手工推导的梯度与损失差分之间的相对误差随步长 h 的变化；分别给出所比较条目的中位数与最大值（误差最大的条目），"
        "再取各随机种子的中位数。复步法画为水平线。",
    ),
    "gradcheck_method": (
        "Why finite differences can fail in deep plain networks: they subtract two losses whose roundoff does not "
        "shrink with the gradient, so a gradient that is small enough is hidden by it. The complex step subtracts "
        "nothing and has no such roundoff.",
        "有限差分为何会在很深的普通网络中失效：它把两个损失相减，而损失的舍入误差不随梯度变小，"
        "梯度足够小时便被淹没。复步法不作减法，没有这种误差。",
    ),
    "gradcheck_describe": (
        "Relative error of the gradient against step size, {arm}, {where}, by method.",
        "{arm}（{where}）梯度的相对误差随步长的变化，按方法区分。",
    ),
    "gradcheck_exact": (
        "{count} medians were exactly zero and cannot stand on a logarithmic axis.",
        "有 {count} 个中位数恰为零，无法在对数坐标上显示。",
    ),
    "method.central": ("central difference", "中心差分"),
    "method.five_point": ("five-point difference", "五点差分"),
    "method.complex": ("complex step", "复步法"),
    "x_h": ("step size h", "步长 h"),
    "y_error": ("relative error", "相对误差"),
}

_ALL = (
    _TABLE
    | JUDGED
    | PAIRING
    | RECIPE
    | MODEL
    | DIAGNOSIS
    | COMPARE
    | COURSE
    | CURVATURE
    | RANKING
    | ARMS
    | TIME
    | TEXTS
    | LANDSCAPE
)
STRINGS: Mapping[Lang, Mapping[str, str]] = MappingProxyType(
    {lang: MappingProxyType({key: texts[index] for key, texts in _ALL.items()}) for index, lang in enumerate(LANGS)}
)
"""language -> key -> text."""
