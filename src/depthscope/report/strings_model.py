"""Sentences of the page of one model."""

from __future__ import annotations

MODEL: dict[str, tuple[str, str]] = {
    # The head
    "model.question": (
        "What each block does to the signal on its way up and to the gradient on its way down, in one batch.",
        "在一个批次中，每个块对前向信号与反向梯度做了什么。",
    ),
    "model.blocks": ("{n} blocks", "{n} 个块"),
    "model.additions": ("{n} residual additions", "{n} 处残差相加"),
    "model.addition": ("1 residual addition", "1 处残差相加"),
    "model.parameters": ("{n} parameters", "{n} 个参数"),
    "model.noise": (
        "The input is made-up noise of the given shape, not data: this is a verdict on the model at noise. Standard "
        "normal numbers, or tokens drawn evenly; seed 0 of Depthscope's named streams.",
        "输入是按给定形状生成的噪声，而非真实数据：以下是模型在噪声上的诊断。"
        "取标准正态数，或均匀抽取的词元；由 Depthscope 命名随机流的种子 0 生成。",
    ),
    "model.cotangent": (
        "No loss was given and the model gives none: dL/dh is the gradient of the output along a random direction. "
        "Multipliers mean the same; the absolute size of |dL/dh| means nothing.",
        "没有给出损失，模型也不提供损失：dL/dh 是输出沿随机方向的梯度。倍数含义不变，|dL/dh| 的绝对大小没有意义。",
    ),
    "model.silent": ("Some places gave no readings: {why}.", "部分位置没有读数：{why}。"),
    "model.nonfinite": (
        "Numbers that are not finite first appear at {name}.",
        "非有限数值最先出现在 {name}。",
    ),
    # Verdicts
    "verdict.healthy": ("Healthy", "健康"),
    "verdict.vanishing": ("Vanishing gradient", "梯度消失"),
    "verdict.exploding": ("Exploding gradient", "梯度爆炸"),
    "verdict.branch-dominated": ("Branch-dominated", "支路主导"),
    "verdict.unused layers": ("Unused layers", "有未使用的层"),
    "verdict.rank collapse": ("Rank collapse", "秩坍缩"),
    "verdict.not depth": ("Not depth", "与深度无关"),
    "verdict.cannot tell": ("Cannot tell", "无法判断"),
    "model.where": ("Where", "位置"),
    "model.whole_body": ("the whole body", "整个主体"),
    "model.notes": ("Note", "说明"),
    "model.rate": (
        "{value} a block, 95% interval {low} to {high}, over {n} blocks",
        "每块 {value}，95% 区间 {low} 至 {high}，共 {n} 个块",
    ),
    "model.numbers": ("Numbers", "数值"),
    "model.cause": ("Cause", "原因"),
    "model.repair": ("Try", "可尝试"),
    "model.also": ("Also", "另外"),
    "model.rule": ("Rule", "判据"),
    "model.inferred": ("inferred", "推断"),
    "model.and_more": ("and {n} more", "以及另外 {n} 个"),
    # Pictures
    "model.signal_section": ("Gradient and signal by depth", "梯度与信号随深度的变化"),
    "model.signal_caption": (
        "Input on the left, output on the right; each place is the tensor at the end of a block. |dL/dh| is read from "
        "right to left, the way the gradient goes. Log axes.",
        "左为输入，右为输出；每个位置是一个块末端的张量。|dL/dh| 应从右向左看，即梯度传播的方向。对数坐标。",
    ),
    "model.signal_expected": (
        "Dashed: |dL/dh| expected from mean-field theory where activation, initialiser and normaliser are recognised, "
        "started at the measured value at its output end.",
        "虚线：在识别出激活函数、初始化与归一化之处，由平均场理论给出的 |dL/dh|，以其输出端的实测值为起点。",
    ),
    "model.multiplier_section": ("What each block does to the gradient", "每个块对梯度的作用"),
    "model.multiplier_caption": (
        "The multiplier of a block: |dL/dh| at its input over |dL/dh| at its output. On the line at 1 a block leaves "
        "the gradient's norm alone; all multipliers together multiply out to the total.",
        "块的倍数：其输入处的 |dL/dh| 与输出处之比。落在 1 线上的块不改变梯度的范数；全部倍数相乘即为总倍数。",
    ),
    "model.ratio_section": ("Branch against skip at each addition", "每处相加中支路与捷径之比"),
    "model.ratio_caption": (
        "|F|/|x| at each residual addition: above 1 the branch outweighs what it is added to.",
        "每处残差相加的 |F|/|x|：大于 1 表示支路大于被加的捷径。",
    ),
    "model.rank_section": ("Effective rank by depth", "有效秩随深度的变化"),
    "model.rank_caption": (
        "How many directions the batch still fills after each block. Dashed: the most that it could be with so many "
        "examples and units.",
        "经过每个块后，该批样本仍占据多少个方向。虚线：在此样本数与单元数下可能的最大值。",
    ),
    "model.jacobian_section": ("Singular values of each block's Jacobian", "各块雅可比矩阵的奇异值"),
    "model.jacobian_caption": (
        "Largest and root-mean-square singular value, mean over examples. On the line at 1 a block keeps lengths.",
        "最大奇异值与均方根奇异值，对样本取平均。落在 1 线上的块保持长度。",
    ),
    "model.ticks": (
        "Dashes: expected; the pale bar is the band in which a measured value agrees with it.",
        "短横线：理论值；浅色条为与之相符的实测值范围。",
    ),
    "model.left_out": (
        "{n} values that are zero or not finite have no place on a log axis; the table below holds them.",
        "有 {n} 个为零或非有限的数值无法在对数坐标上显示，见下表。",
    ),
    "model.left_out_one": (
        "One value that is zero or not finite has no place on a log axis; the table below holds it.",
        "有一个为零或非有限的数值无法在对数坐标上显示，见下表。",
    ),
    "model.expected": ("expected", "理论值"),
    "model.ends": ("stem and head", "首段与末段"),
    "model.culprit": ("named by the verdict", "结论所指"),
    "model.place": ("place", "位置"),
    "model.value": ("value", "数值"),
    "model.note": ("what it holds", "包含"),
    "model.not_finite": ("not finite", "非有限"),
    "model.describe": (
        "{what} by depth, from input to output, {n} blocks.",
        "{what} 随深度的变化，从输入到输出，共 {n} 个块。",
    ),
    "reading.jacobian": ("singular value", "奇异值"),
    "model.input": ("input", "输入"),
    "reading.grad_multiplier": ("multiplier", "倍数"),
    "reading.rank": ("effective rank", "有效秩"),
    "reading.jacobian_max": ("largest", "最大"),
    "reading.jacobian_rms": ("root mean square", "均方根"),
    # Tables
    "model.table_section": ("Block by block", "逐块数据"),
    "model.table_lead": (
        "|h| and |dL/dh| at the block's output; the last columns at the residual addition in it.",
        "|h| 与 |dL/dh| 取自块的输出处；最后几列取自其中的残差相加。",
    ),
    "model.all_blocks": ("All {n} blocks", "全部 {n} 个块"),
    "model.block": ("block", "块"),
    "model.ops": ("operations", "运算"),
    "model.flags": ("flags", "标记"),
    "model.cosine": ("cosine", "余弦"),
    "model.flag.named": ("named by the verdict", "结论所指"),
    "model.flag.nonfinite": ("{n} not finite", "{n} 个非有限值"),
    "model.flag.dead": ("{share} of units dead", "{share} 的单元失活"),
    "model.flag.saturated": ("{share} saturated", "{share} 饱和"),
    "role.stem": ("stem", "首段"),
    "role.body": ("body", "主体"),
    "role.head": ("head", "末段"),
    "model.parameters_section": ("Parameters", "参数"),
    "model.all_ok": (
        "A gradient reached each of the {n} parameter tensors.",
        "梯度到达了全部 {n} 个参数张量。",
    ),
    "model.some_ok": (
        "A gradient reached {k} of {n} parameter tensors; of the others:",
        "{n} 个参数张量中有 {k} 个得到梯度；其余如下：",
    ),
    "model.all_parameters": ("All {n} names", "全部 {n} 个名称"),
    "model.parameter": ("parameter", "参数"),
    "model.shape": ("shape", "形状"),
    "model.status": ("status", "状态"),
    "status.ok": ("ok", "正常"),
    "status.no grad": ("no gradient reached it", "没有梯度到达"),
    "status.frozen": ("frozen", "已冻结"),
    "status.unused": ("unused in the forward pass", "前向计算中未使用"),
    "status.shared": ("another name of one listed", "已列参数的别名"),
    # Facts
    "model.conditions_section": ("Under which conditions", "测量条件"),
    "model.objective": ("gradients of", "梯度来自"),
    "objective.loss": ("the loss that was given", "给定的损失"),
    "objective.model loss": ("the model's own loss (output.loss)", "模型自身的损失（output.loss）"),
    "objective.cotangent": ("a random cotangent; no loss was given", "随机余切方向；没有给出损失"),
    "model.loss": ("loss", "损失"),
    "model.loss_chance": ("{loss}, where a uniform guess has {chance}", "{loss}；均匀猜测为 {chance}"),
    "model.data": ("input", "输入"),
    "data.given": ("given by the caller", "由调用者给出"),
    "data.noise": ("made-up noise", "生成的噪声"),
    "model.batch": ("examples in the batch", "批次样本数"),
    "model.mode": ("mode", "模式"),
    "mode.train": ("train, as found: dropout draws, batch norm uses the batch", "训练模式（保持原样）"),
    "mode.eval": ("eval, as found", "评估模式（保持原样）"),
    "model.dtype": ("parameters, device", "参数类型、设备"),
    "model.structure": ("structure", "结构"),
    "model.counts": (
        "{blocks} blocks ({body} in the body), {additions} residual additions, {concatenations} concatenations, "
        "{gates} gates",
        "{blocks} 个块（主体 {body} 个），{additions} 处残差相加，{concatenations} 处拼接，{gates} 处门控",
    ),
    "model.total": ("through the body", "经过主体"),
    "model.total_text": (
        "the gradient is multiplied by {value} from the last block of the body to the first",
        "梯度从主体末块到首块共乘以 {value}",
    ),
    "model.trust": ("numerical trust", "数值可信度"),
    "model.trust_text": (
        "cosine {value} between the gradient in this dtype and that in float64",
        "该精度下的梯度与 float64 梯度的余弦为 {value}",
    ),
    "model.repeat_lead": ("This measures it again:", "用它重新测量："),
    "model.made_on": ("measured with", "测量环境"),
    # Glossary
    "model.gloss.multiplier": ("multiplier", "倍数"),
    "model.gloss.multiplier.text": (
        "|dL/dx| at the input of a block over |dL/dx| at its output. It does not change when the loss is scaled.",
        "块输入处的 |dL/dx| 与输出处之比；损失整体缩放时不变。",
    ),
    "model.gloss.boundary": ("block", "块"),
    "model.gloss.boundary.text": (
        "What lies between two neighbouring tensors through which everything that depends on the input flows, found "
        "in one traced forward pass.",
        "两个相邻“必经张量”之间的部分：一切依赖输入的信息都流经这些张量，由一次前向追踪得出。",
    ),
    "model.gloss.ratio.text": (
        "At a residual addition x + F(x): the norm of the branch over that of the skip, mean over examples.",
        "残差相加 x + F(x) 处，支路范数与捷径范数之比，对样本取平均。",
    ),
    "model.gloss.expected": ("expected", "理论值"),
    "model.gloss.expected.text": (
        "The mean-field value of a wide network with the recognised activation, initialiser and normaliser; none is "
        "given where they are not recognised.",
        "按识别出的激活函数、初始化与归一化，由宽网络平均场理论得到的值；未能识别之处不给出。",
    ),
    "model.gloss.ends": ("stem, head", "首段、末段"),
    "model.gloss.ends.text": (
        "The first and last blocks, where they change the data's shape; the body lies between them.",
        "改变数据形状的首块与末块；其间为主体。",
    ),
    "model.gloss.rank": ("effective rank", "有效秩"),
    "model.gloss.rank.text": (
        "exp of the entropy of the normalised squared singular values of h, centred over examples: the number of "
        "directions that the batch fills.",
        "对样本中心化后的 h，其归一化奇异值平方之熵的指数：该批样本占据的方向数。",
    ),
}
"""key: (en, zh)."""
