"""The sentences of the page about claims, controls, failures and how to repeat; `strings` joins them to the rest."""

from __future__ import annotations

# key: (en, zh). Braces are filled by `str.format`.
JUDGED: dict[str, tuple[str, str]] = {
    # Claims
    "claims_section": ("What was claimed, and what came of it", "论断与判定"),
    "declared.before": (
        "The claims were declared before the runs: every record keeps their digest, and all agree.",
        "论断在运行之前已经声明：每条记录都保存了论断的摘要值，且全部一致。",
    ),
    "declared.no_runs": ("No run has been made yet.", "尚未进行任何运行。"),
    "declared.changed": (
        "Claims were changed or added after {changed} of {total} runs had been made.",
        "在 {total} 次运行中的 {changed} 次完成之后，论断有过修改或增补。",
    ),
    "declared.unknown": (
        "Whether the claims were declared before the runs is not recorded for {unknown} of {total} runs.",
        "{total} 次运行中有 {unknown} 次没有记录论断是否在运行之前声明。",
    ),
    "claims_key": (
        "The shaded side agrees with the claim; the diamond is the estimate, the bar its interval, "
        "small dots the single seeds. Where every seed must agree, each square is a seed.",
        "阴影一侧与论断相符；菱形为估计值，横条为其区间，小点为各随机种子。若要求每个种子都相符，则每个方块代表一个种子。",
    ),
    "claims_rule": (
        "How a verdict is reached: an interval that lies wholly on the claimed side makes the claim supported, one "
        "wholly beyond makes it refuted, and one that holds the margin leaves it undecided. A claim about every seed "
        "is supported when every run satisfies it and refuted by any that does not. A monotone claim is supported "
        "when every step's interval agrees and refuted by any step's that lies wholly beyond. A claim of no "
        "degradation is supported only where the interval rules out a worsening beyond its margin. A claim that at "
        "least one of several alternatives agrees is supported by any whose interval does, at a level corrected for "
        "their number (Holm), and refuted only when every alternative's interval lies wholly beyond.",
        "判定规则：区间完全落在论断一侧为成立，完全落在另一侧为不成立，跨过界限则尚无定论。"
        "关于“每个种子”的论断，须每次运行都满足才成立，有一次不满足即不成立。"
        "单调论断须每一步的区间都相符才成立，有一步的区间完全落在另一侧即不成立。“无退化”论断仅在区间排除了超过界值的变差时成立。"
        "“几种方案中至少一种相符”的论断，只要有一种的区间相符即成立（置信水平按方案数作 Holm 校正），"
        "须每一种的区间都完全落在另一侧才不成立。",
    ),
    "claims_exploratory": ("Exploratory claims", "探索性论断"),
    "claims_exploratory_lead": (
        "{counts}. Their intervals are not corrected for the number of claims. Open a line for its reason and its "
        "estimates.",
        "{counts}。其区间未按论断数量作多重比较校正。展开一行可查看理由与估计值。",
    ),
    "claims_counted": ("{count} {verdict}", "{count} 条{verdict}"),
    "verdict.supported": ("supported", "成立"),
    "verdict.refuted": ("refuted", "不成立"),
    "verdict.undecided": ("undecided", "尚无定论"),
    "difference_of": ("mean difference in {metric}", "{metric}之差的均值"),
    "worsening_of": ("mean worsening of {metric}", "{metric}变差幅度的均值"),
    "in_points": ("{title}, in points", "{title}（百分点）"),
    "of_seeds.median": ("{metric}, median over seeds", "{metric}，种子中位数"),
    "over_theory": ("measured over expected", "实测与理论之比"),
    "share_of_runs": ("share of seeds that satisfy the claim", "满足论断的种子所占比例"),
    "tag_confirmatory": ("confirmatory", "确认性"),
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
    "interval": ("interval", "区间"),
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
        "all tensors that both have start exactly equal: {count}, on {seeds:the one seed|each of {seeds} seeds}",
        "两者共有的 {count} 个张量在全部 {seeds} 个随机种子上起点完全相同",
    ),
    "control.some_shared": (
        "tensors that both have and that start exactly equal: {count}, on {seeds:the one seed|each of {seeds} seeds}",
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
    "control.skipped": (
        "seeds that cannot be compared, because a record keeps no digests: {count}",
        "因记录没有摘要值而无法比较的随机种子：{count} 个",
    ),
    "control.fields": ("differs by design: {fields}", "有意不同的设置：{fields}"),
    "control_by_design": (
        "Settings in which an arm differs from the one it is compared with, by design: {fields}. "
        "All other settings of a run are equal.",
        "各组与其对照组之间有意不同的设置：{fields}。其余设置全部相同。",
    ),
    "control_no_field": ("The arms differ in no setting of a run.", "各组之间没有任何设置不同。"),
    "control_recipe": ("How the recipe was chosen: {text}", "配方的选择依据：{text}"),
    "and_others": ("{count} more", "另外 {count} 项"),
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
        "From the directory that the study was run in, this command continues a partial folder. Where all runs are "
        "done it makes none; it judges the claims and writes this page again.",
        "在当初运行本研究的目录下，此命令会继续未完成的文件夹；若已全部完成则不再运行，只重新判定论断并重写本页。",
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
    "prov.total_time": ("CPU time, sum of the runs' own", "各次运行的 CPU 时间之和"),
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
