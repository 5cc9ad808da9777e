"""What the page says of the texts that trained networks wrote."""

from __future__ import annotations

TEXTS: dict[str, tuple[str, str]] = {
    "texts_section": ("Samples", "生成样例"),
    "texts_lead": (
        "What the trained networks write after the step named, each token drawn from the network's probabilities at "
        "temperature 1; of each cell, the first seed that wrote. Of one seed, texts at the same place in the lists "
        "were drawn with the same random numbers. No claim is judged by them.",
        "训练后的网络在所示步数之后写出的文本，每个词元按网络给出的概率以温度 1 抽取；每格取第一个有文本的随机种子。"
        "同一种子下，列表中同一位置的文本用相同的随机数抽取。论断不以它们判定。",
    ),
    "texts_at": ("seed {seed}, step {step}", "随机种子 {seed}，第 {step} 步"),
    "texts_more": ("{count} more", "另外 {count} 段"),
    "texts_empty": ("(empty: it ended at once)", "（空：一开始就结束）"),
}
"""key: (en, zh)."""
