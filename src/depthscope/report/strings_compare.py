"""Sentences of the page of a comparison of variants."""

from __future__ import annotations

COMPARE: dict[str, tuple[str, str]] = {
    "compare.versus": (" vs. ", " 与 "),
    "compare.question": (
        "Trained side by side: the same seeds, the same batches in the same order, the same draws in each update.",
        "并排训练：相同的种子，相同顺序的相同批次，每次更新使用相同的随机数。",
    ),
    "compare.variants": ("{n} variants", "{n} 个变体"),
    "compare.steps": ("{n} updates each", "各更新 {n} 次"),
    "compare.one_seed": (
        "One seed gives no interval: what differs here may be chance. Run 3 or more.",
        "一个种子没有区间：此处的差异可能出于偶然。请运行 3 个或更多。",
    ),
    "compare.figures_section": ("How they ended", "最终结果"),
    "compare.figures_lead": (
        "Means over the seeds that completed, below each its {level} interval. Clean figures: eval mode, after the "
        "last update, on {n} training examples{validation}.",
        "对完成的种子取均值，下方为其 {level} 区间。"
        "干净指标：最后一次更新之后，评估模式，训练样本 {n} 个{validation}。",
    ),
    "compare.validation": (" and {n} validation examples", "，验证样本 {n} 个"),
    "compare.completed": ("completed", "完成"),
    "compare.probed_section": ("What the probe says", "诊断"),
    "compare.probed_before": ("“{arm}” before the first update", "“{arm}”第一次更新之前"),
    "compare.probed_after": ("“{arm}” after the last update", "“{arm}”最后一次更新之后"),
    "compare.probed_rate": ("Multiplier a block {value}, mean over seeds.", "每块倍数 {value}（各种子的均值）。"),
    "metric.clean.train_loss": ("training loss", "训练损失"),
    "metric.clean.train_accuracy": ("training accuracy", "训练准确率"),
    "metric.clean.validation_loss": ("validation loss", "验证损失"),
    "metric.clean.validation_accuracy": ("validation accuracy", "验证准确率"),
    "compare.additions": ("additions", "残差相加"),
    "compare.claims_lead": (
        "Decided by the training loss on clean examples; what was asked of it was fixed before any run, and several "
        "variants share its error rate (Holm). The other figures are exploratory.",
        "以干净样本上的训练损失为准：其判据在任何运行之前已定，多个变体共享其错误率（Holm）。其余指标为探索性。",
    ),
    "compare.curves_section": ("How training went", "训练过程"),
    "compare.curves_caption": (
        "Training loss of each batch before its update. Thin lines are seeds, the strong one their mean, which ends "
        "where the first seed stops.",
        "每个批次在其更新之前的训练损失。细线为各种子，粗线为其均值，在最先停止的种子处结束。",
    ),
    "compare.profile_section": ("The gradient by depth, before and after", "训练前后梯度随深度的变化"),
    "compare.profile_caption": (
        "|dL/dh| at the end of each block, on the first batch of each seed; input on the left. Thin lines are seeds, "
        "the strong one their median. The depth of every variant is scaled to the same width.",
        "各种子的第一个批次上，各块末端的 |dL/dh|；左为输入。"
        "细线为各种子，粗线为其中位数。各变体的深度缩放到同一宽度。",
    ),
    "compare.before": ("before the first update", "第一次更新之前"),
    "compare.after": ("after the last update", "最后一次更新之后"),
    "compare.depth": ("depth, share", "相对深度"),
    "compare.shared_section": ("What they share", "共同之处"),
    "compare.batches": (
        "Every variant saw the same batches in the same order: each was drawn once.",
        "每个变体按相同顺序看到相同的批次：每个批次只抽取一次。",
    ),
    "compare.draws": (
        "Dropout and the like drew from generators put at the same place before each update of each variant.",
        "每个变体的每次更新之前，dropout 等所用的随机数生成器都置于同一位置。",
    ),
    "compare.unrepeated": (
        "{names}: two builds with the same seed gave other initial values: the factory draws from something else than "
        "the global generators, and its start is not paired.",
        "{names}：同一种子的两次构建得到不同的初值，其工厂函数使用了全局生成器以外的随机源，起点并未配对。",
    ),
    "compare.fates_section": ("Runs that did not complete", "未完成的运行"),
    "compare.fate": ("seed {seed}, after {step} updates", "种子 {seed}，更新 {step} 次之后"),
    "compare.optimizer": ("optimiser", "优化器"),
    "compare.one_lr": (
        "one setting for all: a variant may want another than the others do",
        "所有变体共用一套设置：某个变体可能更适合别的设置",
    ),
    "compare.data": ("training data", "训练数据"),
    "compare.loss": ("loss", "损失"),
    "compare.device": ("device", "设备"),
    "compare.versions": ("versions", "版本"),
    "compare.seeds": ("seeds", "种子"),
    "compare.unprofiled": (
        "“{arm}” could not be probed: {why}",
        "“{arm}”无法测量：{why}",
    ),
    "compare.x_step": ("update", "更新次数"),
    "compare.gloss.paired": ("paired", "配对"),
    "compare.gloss.paired.text": (
        "Every seed is run with every variant, and differences are taken seed by seed, so that what a seed adds to "
        "both cancels.",
        "每个种子都运行所有变体，逐个种子求差，使种子带给双方的影响相互抵消。",
    ),
}
"""key: (en, zh)."""
