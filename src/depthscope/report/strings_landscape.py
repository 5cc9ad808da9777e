"""Sentences of loss landscapes, on a study's page and on one of their own."""

from __future__ import annotations

LANDSCAPE: dict[str, tuple[str, str]] = {
    # Figures
    "land.section": ("Loss landscapes", "损失景观"),
    "land.maps": ("The loss around the network", "网络周围的损失"),
    "land.curves": ("The loss along a line through the network", "沿过网络的直线上的损失"),
    "land.convexity": ("Where the loss curves downward", "损失在何处向下弯曲"),
    "land.map_caption": (
        "Each point is the network with its weights moved by a times the first direction and b times the second. "
        "The cross is the network itself. Colours and isolines are of the loss, the same on all maps; move over a "
        "point for its numbers.",
        "每个点是把权重沿第一方向移动 a 倍、沿第二方向移动 b 倍后的网络。十字为网络本身。颜色与等值线表示损失，"
        "各图使用同一色标；将指针移到点上可查看数值。",
    ),
    "land.map_caption_still": (
        "Every run in the planes of all directions, with the colours and isolines of the maps above. Their numbers are "
        "in the tables beside the records.",
        "每次运行在所有方向平面上的图，颜色与等值线同上。数值见记录旁的数据表。",
    ),
    "land.curve_caption": (
        "Each place is the network with its weights moved by a times a direction; a = 0 is the network itself. Thin "
        "lines are seeds and directions; a strong line is the one of the middle loss at the centre.",
        "每个位置是把权重沿一个方向移动 a 倍后的网络；a = 0 为网络本身。细线为各随机种子与各方向；"
        "粗线为中心处损失居中的那一条。",
    ),
    "land.curve_caption_one": (
        "Each place is the network with its weights moved by a times a direction; a = 0 is the network itself.",
        "每个位置是把权重沿一个方向移动 a 倍后的网络；a = 0 为网络本身。",
    ),
    "land.convexity_caption": (
        "The size of the Hessian's most negative eigenvalue over its largest one: 0 where no direction curves "
        "downward, 1 "
        "where one curves downward as strongly as any curves upward. On the first {n} of the examples.",
        "海森矩阵最负特征值的绝对值与最大特征值之比：没有向下弯曲的方向时为 0；向下与向上弯曲的程度相当时为 1。"
        "在前 {n} 个样本上计算。",
    ),
    "land.log": ("{what}, on a logarithmic scale", "{what}（对数色标）"),
    "land.clipped": (
        "Losses above {high} have the colour of the end of the scale.",
        "大于 {high} 的损失取色标末端的颜色。",
    ),
    "land.clipped_ratio": (
        "Ratios above 1 have the colour of the end of the scale.",
        "大于 1 的比值取色标末端的颜色。",
    ),
    "land.chosen_seeds": (
        "Of each cell the run is shown whose loss at the centre is the middle one of its seeds, in the plane of "
        "the first "
        "directions; all {count} maps are below.",
        "每格显示中心损失居于各种子中间的那次运行，取第一组方向的平面；全部 {count} 幅图见下。",
    ),
    "land.spread": (
        "On average, two planes of one network differ by {planes} in this figure, and two seeds by {seeds}: {metric}.",
        "就此指标而言，同一网络的两个平面平均相差 {planes}，两个种子平均相差 {seeds}：{metric}。",
    ),
    "land.odd": (
        "{count} {count:point is|points are} not finite and left hatched.",
        "{count} 个点的数值非有限，以斜线标出。",
    ),
    "land.gaps": (
        "{count} {count:point is|points are} not finite and {count:leaves a gap|leave gaps}.",
        "{count} 个点的数值非有限，曲线在此中断。",
    ),
    "land.missing": (
        "{count} of {total} points are still missing.",
        "{total} 个点中还缺 {count} 个。",
    ),
    "land.outside": (
        "The path leaves the square: {count} of its {total} places lie outside.",
        "路径超出图幅：{total} 个位置中有 {count} 个在外面。",
    ),
    "land.centre": ("the network itself", "网络本身"),
    "land.not_finite": ("not finite", "非有限值"),
    "land.way": ("the training's path", "训练的路径"),
    "land.at_step": ("{step} {step:update|updates}", "第 {step} 步"),
    "land.infinite": ("∞ (too large for the number format)", "∞（超出数值格式）"),
    "land.minus_infinite": ("−∞", "−∞（非有限值）"),
    "land.undefined": ("not a number", "非数值"),
    "land.not_yet": ("still missing", "尚缺"),
    "land.direction": ("direction {n} ({name})", "方向 {n}（{name}）"),
    "land.principal": (
        "principal direction {n} ({name}), {share} of the path's variance",
        "第 {n} 主方向（{name}），占路径方差的 {share}",
    ),
    "land.place": ("a, along the direction", "a（沿该方向）"),
    "land.ratio": ("most negative over largest eigenvalue", "最负与最大特征值之比"),
    "land.lambda_min": ("smallest eigenvalue", "最小特征值"),
    "land.lambda_max": ("largest eigenvalue", "最大特征值"),
    "land.describe": (
        "Map of the {what} of {name}: {num} × {num} points, from {low} to {high}.",
        "{name}的{what}图：{num} × {num} 个点，取值从 {low} 到 {high}。",
    ),
    "land.describe_curve": (
        "{what} along a line of {num} points through the network: {name}.",
        "沿过网络的直线上 {num} 个点的{what}：{name}。",
    ),
    "land.describe_scale": ("Scale of colours: {what} from {low} to {high}.", "色标：{what}从 {low} 到 {high}。"),
    # What a map is of
    "land.examples": ("{n} {n:example|examples}", "{n} 个样本"),
    "land.norm.eval": ("batch norm by its running statistics", "批归一化使用滑动统计量"),
    "land.norm.batch": ("batch norm re-estimated at every point", "批归一化在每个点重新估计"),
    "land.norm.none": ("no batch norm", "没有批归一化"),
    "land.directions.filter": (
        "filter-normalised directions of {seeds}",
        "按滤波器归一化的方向，{seeds}",
    ),
    "land.directions.none": ("directions of {seeds}, not normalised", "未归一化的方向，{seeds}"),
    "land.directions.trajectory": (
        "the plane of the training's principal directions",
        "训练路径的主方向平面",
    ),
    "land.seeds": ("{n:seed|seeds} {seeds}", "{n:种子|种子} {seeds}"),
    "land.plane": ("directions of seed {seed}", "方向种子 {seed}"),
    "land.run": ("seed {seed}", "种子 {seed}"),
    "land.all": ("All {count} maps", "全部 {count} 幅图"),
    # A page of its own
    "land.question": (
        "How does the loss change when the weights of this network are moved?",
        "移动这个网络的权重时，损失如何变化？",
    ),
    "land.told_lowest": (
        "The loss is {centre} at the network and nowhere lower among {points} points; the highest is {high}.",
        "网络处的损失为 {centre}，是 {points} 个点中最低的；最高为 {high}。",
    ),
    "land.told_lower": (
        "The loss is {centre} at the network. The lowest of {points} points is {low}, at {place}; the highest is "
        "{high}.",
        "网络处的损失为 {centre}。{points} 个点中最低为 {low}，位于 {place}；最高为 {high}。",
    ),
    "land.told_none": ("No point has a finite loss.", "没有任何点的损失是有限值。"),
    "land.told_curvature": (
        "At the network the Hessian's largest eigenvalue is {largest}, its smallest {smallest}.",
        "网络处海森矩阵的最大特征值为 {largest}，最小特征值为 {smallest}。",
    ),
    "land.told_convex": (
        "In {count} of {points} points a direction curves downward at more than a tenth of the strongest upward "
        "curvature.",
        "{points} 个点中有 {count} 个存在向下弯曲的方向，且弯曲程度超过最强向上弯曲的十分之一。",
    ),
    "land.partial": (
        "This page is partial: {missing} of {total} points are missing. The command below finds only what is missing.",
        "本页内容不完整：{total} 个点中缺少 {missing} 个。下面的命令只会补做缺少的部分。",
    ),
    "land.conditions": ("What was measured", "测量条件"),
    "land.model": ("model", "模型"),
    "land.data": ("data", "数据"),
    "land.loss_of": ("loss function", "损失函数"),
    "land.run_step": ("run", "运行"),
    "land.run_at": ("{run}, after {step} {step:update|updates}", "{run}，第 {step} 步之后"),
    "land.points": ("points", "点"),
    "land.points_plane": (
        "{num} × {num}, a and b from −{extent} to {extent}",
        "{num} × {num}，a 与 b 从 −{extent} 到 {extent}",
    ),
    "land.points_line": ("{num}, a from −{extent} to {extent}", "{num} 个，a 从 −{extent} 到 {extent}"),
    "land.directions": ("directions", "方向"),
    "land.norm": ("batch norm", "批归一化"),
    "land.batches": (
        "the first {n}, in batches of {batch}, the same at every point",
        "前 {n} 个，每批 {batch} 个，每个点都相同",
    ),
    "land.examples_of": ("examples", "样本"),
    "land.precision": ("precision", "精度"),
    "land.hessian": ("Hessian", "海森矩阵"),
    "land.hessian_at": (
        "at {num} × {num} points, on the first {n} examples",
        "在 {num} × {num} 个点上，使用前 {n} 个样本",
    ),
    "land.hessian_line": ("at {num} points, on the first {n} examples", "在 {num} 个点上，使用前 {n} 个样本"),
    "land.digests": ("digests", "摘要"),
    "land.digests_of": ("weights {weights}, examples {data}", "权重 {weights}，样本 {data}"),
    "land.machine": ("machine", "机器"),
    "land.repeat_lead": (
        "This command makes the same map again, and goes on with one that was interrupted.",
        "此命令重新生成同样的图；若曾中断，则从中断处继续。",
    ),
    "land.cite_lead": (
        "The papers whose method this is.",
        "所用方法的出处。",
    ),
    # Glossary
    "gloss.landscape": ("loss landscape", "损失景观"),
    "gloss.landscape.text": (
        "The loss as a function of the weights, seen on a plane through the trained network. A plane is a thin "
        "slice of "
        "a space of as many dimensions as there are weights.",
        "把损失看作权重的函数，在过训练后网络的一个平面上观察。权重有多少个，空间就有多少维，平面只是其中很薄的一片。",
    ),
    "gloss.filter_normalised": ("filter-normalised", "按滤波器归一化"),
    "gloss.filter_normalised.text": (
        "A random direction whose filters have the norms of the network's own, so that one step along it means the "
        "same "
        "for networks whose weights differ in scale; biases and normalisation layers stay as they are.",
        "随机方向的每个滤波器都缩放到与网络自身滤波器相同的范数，使权重尺度不同的网络也可以比较；"
        "偏置与归一化层的参数保持不变。",
    ),
    "gloss.isoline": ("isoline", "等值线"),
    "gloss.isoline.text": (
        "A line along which the loss is the same. Where lines lie close, the loss is steep.",
        "损失相等的线。线越密，损失变化越陡。",
    ),
    "gloss.hessian": ("Hessian, eigenvalue", "海森矩阵、特征值"),
    "gloss.hessian.text": (
        "The second derivatives of the loss by the weights. Its largest eigenvalue is the curvature along the sharpest "
        "direction; a negative one belongs to a direction along which the loss curves downward.",
        "损失对权重的二阶导数。最大特征值是最陡方向上的曲率；负特征值对应损失向下弯曲的方向。",
    ),
}
"""key: (en, zh)."""
