"""The sentences of the page about pairing, effect sizes, families of claims and tuning; `strings` joins them."""

from __future__ import annotations

# key: (en, zh). Braces are filled by `str.format`.
PAIRING: dict[str, tuple[str, str]] = {
    # Under each claim
    "pairing.between": ("{a} and {b}: ", "{a}与{b}："),
    "pairing.tensors": (
        "{shared} of {common} tensors that both have start equal, on {seeds:the one seed|each of {seeds} seeds}",
        "两者共有的 {common} 个张量中有 {shared} 个起点相同（{seeds} 个随机种子均如此）",
    ),
    "pairing.no_tensor": ("no tensor is on both sides", "两侧没有共有的张量"),
    "pairing.reshaped": ("{count} {count:has|have} another shape on either side", "{count} 个张量在两侧形状不同"),
    "pairing.only": ("{count} {count:tensor is|tensors are} on one side alone", "{count} 个张量仅一侧拥有"),
    "pairing.same": ("the same {what}", "相同的{what}"),
    "pairing.data": ("data", "数据"),
    "pairing.order": ("order", "批次顺序"),
    "pairing.augment": ("augmentation", "数据增强"),
    "pairing.code": ("own code", "自定义代码"),
    "pairing.varied": ("what varies: {fields}", "变化的设置：{fields}"),
    "pairing.tuned": ("{field} (tuned for each arm)", "{field}（各组分别调优）"),
    "pairing.tuned_by": ("{field} (tuned for each arm at each {axes})", "{field}（各组在每个{axes}上分别调优）"),
    "pairing.nothing": ("nothing varies", "没有任何设置变化"),
    "flag.data": (
        "Not paired in the data: the two sides did not see the same examples.",
        "数据不成对：两侧所用的样本不同。",
    ),
    "flag.order": (
        "Not paired in the order: the two sides saw their examples in another order.",
        "顺序不成对：两侧的样本顺序不同。",
    ),
    "flag.augment": (
        "Not paired in the augmentation: the two sides drew it otherwise.",
        "数据增强不成对：两侧的随机抽取不同。",
    ),
    "flag.code": (
        "The code of a model, data set or initialiser is not the same on both sides.",
        "两侧所用的模型、数据集或初始化代码不同。",
    ),
    "flag.several": (
        "More than one thing varies: {varied}. A difference cannot be put down to one of them.",
        "同时变化的不止一项：{varied}。差异不能归因于其中某一项。",
    ),
    "flag.implied": (
        "The start varies too: {count} {count:tensor|tensors} that both have {count:starts|start} otherwise, though no "
        "setting of the initialiser differs ({names}).",
        "起点也不同：没有改动初始化设置，但两者共有的 {count} 个张量起点不同（{names}）。",
    ),
    "flag.unknown": (
        "The records do not tell whether all was the same on both sides.",
        "记录不足以说明两侧的其余条件是否完全相同。",
    ),
    # Effect sizes and families
    "effect": ("effect size g_z {value}, from {low} to {high}", "效应量 g_z {value}，区间 {low} 至 {high}"),
    "family": (
        "One of {count} confirmatory claims, which share one error rate (Holm): its interval covers {level}, not 95%.",
        "本研究共有 {count} 条确认性论断，共用同一错误率（Holm 校正），因此其区间的覆盖率为 {level}，而非 95%。",
    ),
    "bonferroni": (
        "{level} instead of 95%: {count} steps are as many chances to refute the claim, corrected by Bonferroni.",
        "区间覆盖率为 {level} 而非 95%：{count} 步即有 {count} 次机会判为不成立，按 Bonferroni 校正。",
    ),
    "bonferroni_of": (
        "{level} instead of 95%: {count} alternatives are as many chances to support the claim, corrected by "
        "Bonferroni.",
        "区间覆盖率为 {level} 而非 95%：{count} 个备选即有 {count} 次机会判为成立，按 Bonferroni 校正。",
    ),
    "holm_of": (
        "The intervals, the first with {level}, are corrected for {count} alternatives by Holm's rule: all that are "
        "said to meet the claim do, but for 5%.",
        "区间（第一个为 {level}）已按 Holm 法对 {count} 个备选校正：所列出的均符合论断，总错误率不超过 5%。",
    ),
    "gloss.effect": ("effect size g_z", "效应量 g_z"),
    "gloss.effect.text": (
        "A mean difference divided by its spread between seeds, corrected for small samples (Hedges): how regular a "
        "change is, not how large. It compares with no effect size of unpaired groups.",
        "差值的均值除以其在随机种子间的标准差，并作小样本校正（Hedges）：表示变化有多稳定，而不是有多大；"
        "不能与非配对分组的效应量相比。",
    ),
    "gloss.margin": ("no degradation, margin", "无退化、界值"),
    "gloss.margin.text": (
        "The most worsening that would still count as none, named before the runs. Such a claim is supported only "
        "where the interval rules out more; that no difference was found is not enough.",
        "运行之前声明的、仍可视为没有变差的最大幅度。只有区间排除了更大的变差，论断才成立；仅仅没有发现差异并不够。",
    ),
    # Tuning
    "tuned_section": ("How {field} was tuned", "{field} 的调优方式"),
    "tuned_lead": (
        "Chosen for {each} before this study, among {grid}, by {metric} on {validation} examples held out of the "
        "training set and {seeds} {seeds:seed that is|seeds that are} not run here; {runs} runs were made to choose. "
        "What is reported above comes from other seeds, trained on the whole training set; the test set was not looked "
        "at before.",
        "在本研究之前，为{each}在 {grid} 中选定，依据是从训练集留出的 {validation} 个样本、"
        "{seeds} 个本研究不使用的随机种子上的{metric}；选择共用了 {runs} 次运行。"
        "上文的结果来自其他种子，使用完整的训练集；此前未查看过测试集。",
    ),
    "choosing_section": ("Which {field} won", "选中的 {field}"),
    "choosing_lead": (
        "Tried for {each}: {grid}. Compared is the mean {metric} on {validation} examples held out of the training "
        "set, over {seeds} {seeds:seed|seeds} that the study itself does not run; the test set was not opened. A value "
        "at which runs were lost stands behind all at which fewer were. The rest of this page shows all the values "
        "that were tried, winners and losers.",
        "{each}尝试了 {grid}，比较的是从训练集留出的 {validation} 个样本上、{seeds} 个研究本身不运行的随机种子的"
        "{metric}均值；未打开测试集。丢失运行较多的取值排在较少的之后。本页其余部分显示尝试过的全部取值，无论胜负。",
    ),
    "choosing_waits": ("Not chosen yet; missing runs: {missing}.", "尚未选定；尚缺 {missing} 次运行。"),
    "choosing_none": ("Nothing chosen: no run ended with a figure.", "未能选定：没有一次运行得到指标。"),
    "tuned_edge": (
        "The {which} value of the grid: a better one may lie outside it.",
        "这是网格的{which}值：更好的值可能在网格之外。",
    ),
    "tuned_edge.low": ("smallest", "最小"),
    "tuned_edge.high": ("largest", "最大"),
    "tuned_edge.short": ("{which} tried", "所试的{which}值"),
    "tuned_note": (
        "Smallest and largest tried: a better value may lie outside the grid.",
        "所试的最小值与最大值：更好的值可能在网格之外。",
    ),
    "tuned_each": ("each arm", "每组"),
    "tuned_each_by": ("each arm at each {axes}", "每组在每个{axes}上"),
    "tuned_unfit": (
        "No run ended with a figure at any value: the smallest stands in.",
        "任何取值都没有得到指标：以最小值代替。",
    ),
    "tuned_inside": ("inside the grid", "在网格内部"),
    "tuned_lost": ("{lost} of {runs} runs ended without a figure", "{runs} 次运行中有 {lost} 次没有得到指标"),
    "tuned_lost.short": ("{lost} of {runs} runs lost", "丢失 {lost}/{runs} 次运行"),
    "tuned_unfit.short": ("every run lost", "全部运行均丢失"),
    "tuned_score": ("{value}: {mean}", "{value}：{mean}"),
    "tuned_describe": ("{metric} by {field}: {scores}", "{metric}随 {field} 的变化：{scores}"),
    # Axes other than depth
    "axis_section": ("The result against {axis}", "结果随{axis}的变化"),
    "axis_caption": (
        "Each small mark is one seed, each large one the mean over seeds, with its {level} interval. "
        "Marks stand side by side so that none hides another; {axis}: {values}.",
        "每个小标记是一个随机种子，每个大标记是各种子的均值及其 {level} 区间。"
        "标记并排放置以免相互遮挡；{axis}：{values}。",
    ),
    "axis_describe": (
        "{metric} against {axis} ({values}), one line for each arm: {arms}.",
        "{metric}随 {axis}（{values}）的变化，每组一条线：{arms}。",
    ),
    "axis_is": ("{axis} = {value}", "{axis} = {value}"),
    "here": ("Here {here}.", "此图为 {here}。"),
    "elsewhere": (
        "The {count} other values have sections of their own below.",
        "另外 {count} 个取值见下文各自的小节。",
    ),
    "elsewhere_one": ("The other value has a section of its own below.", "另一个取值见下文其小节。"),
    "axis_at": ("{axis} {value}", "{axis} {value}"),
    "axis.lr": ("learning rate", "学习率"),
    "axis.precision": ("precision", "精度"),
    "axis.width": ("width", "宽度"),
    "axis.batch_size": ("batch size", "批大小"),
    "axis.data_options.num_train": ("training examples", "训练样本数"),
}
