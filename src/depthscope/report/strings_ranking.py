"""The sentences of the page about rankings; `strings` joins them to the rest."""

from __future__ import annotations

# key: (en, zh). Braces are filled by `str.format`.
RANKING: dict[str, tuple[str, str]] = {
    "ranking_section": ("Ranking", "排名"),
    "ranking_lead": (
        "Arms in the order of their mean {metric}{where}; runs that were lost stand last. Of {pairs} "
        "{pairs:pair|pairs} of arms, compared seed by seed and all together, {settled} {settled:is|are} settled at "
        "{level}{by_loss}. The ranks that this leaves possible stand at the right, in brackets where they are several.",
        "各组按{where}{metric}的均值排列；有运行失败的排在最后。逐种子成对、一并比较的 {pairs} 对中，"
        "有 {settled} 对在 {level} 水平上可以分出高下{by_loss}。由此仍有可能的名次列在右侧：若不止一个，则写在括号中。",
    ),
    "ranking_open": (
        "Arms in the order of their mean {metric}{where}; runs that were lost stand last. The order is open: of "
        "{pairs} pairs of arms, compared seed by seed and all together, none is settled at {level}.",
        "各组按{where}{metric}的均值排列；有运行失败的排在最后。名次尚无定论："
        "逐种子成对、一并比较的 {pairs} 对中，没有一对在 {level} 水平上可以分出高下。",
    ),
    "ranking_saturated": (
        "Every run of each of the {count} arms has a {metric} of 100%{where}: this figure cannot tell the arms apart. "
        "Another may, such as a loss or a test figure in the table of the part.",
        "{count} 组的每次运行{where}{metric}都是 100%：这一指标无法区分各组。该部分表格中的其他指标或许可以，"
        "例如损失或测试集上的数值。",
    ),
    "ranking_by_loss": (
        ", and {count} {count:is|are} decided by lost runs: every run of one arm diverged, and none of the other",
        "；另有 {count} 对由失败的运行决定：一组全部发散，另一组无一发散",
    ),
    "ranking_where": (" at depth {depth}", "深度 {depth} 时"),
    "ranking_caption": (
        "Each arm's mean over seeds with its {level} interval, and every seed as a small dot; an interval that reaches "
        "far beyond all values is cut at the edge. {lines}In the columns of differences, seeds are paired and each "
        "interval stands for itself at {level}. The best arm was chosen by these seeds, so that its lead is a little "
        "too large.",
        "各组在随机种子上的均值及其 {level} 区间，小点为各个种子；远超所有数值的区间在图边缘截断。{lines}"
        "差值各列按种子配对，每个区间各自为 {level}。"
        "最佳的一组正是由这些种子选出的，因此其领先幅度略有高估。",
    ),
    "ranking_lines": (
        "Filled dots are the deepest networks, and a line joins an arm's depths. Vertical lines: {baseline}, dotted at "
        "depth {shallow} and drawn through at {deep}. ",
        "实心点为最深的网络，横线连接同一组的各个深度。竖线为{baseline}：深度 {shallow} 为虚线，{deep} 为实线。",
    ),
    "ranking_line": ("The vertical line is {baseline}. ", "竖线为{baseline}。"),
    "ranking_chance": ("The line of long dashes is {what}. ", "长虚线为{what}。"),
    "ranking_describe": (
        "{metric} of {count} arms, a row each from the best down{where}: {arms}.",
        "{count} 组的{metric}，每组一行，自上而下由好到差{where}：{arms}。",
    ),
    "ranking_rank": ("rank", "名次"),
    "ranking_possible": ("possible {low}–{high}", "可能为 {low}–{high}"),
    "ranking_sure": ("settled", "已确定"),
    "ranking_at": ("{metric}, depth {depth}", "{metric}，深度 {depth}"),
    "ranking_change": ("change from depth {shallow} to {deep}", "深度 {shallow} 到 {deep} 的变化"),
    "ranking_from_baseline": ("minus {baseline}{where}", "{where}减去{baseline}"),
    "ranking_from_best": ("minus the best{where}", "{where}减去最佳"),
    "ranking_tuned": ("{axis} at {depths}", "{axis}（深度 {depths}）"),
    "ranking_lost": ("lost runs", "失败的运行"),
    "ranking_lost_of": ("{lost} of {total} lost", "{total} 次中失败 {lost} 次"),
    "ranking_lost_at": ("depth {depth}: {lost} of {total}", "深度 {depth}：{lost} / {total}"),
    "ranking_points": ("{title} (points)", "{title}（百分点）"),
    "ranking_left_out": (
        "Not ranked, as the study leaves them out at depth {depth}: {arms}.",
        "未参与排名（本研究在深度 {depth} 不含这些组）：{arms}。",
    ),
}
