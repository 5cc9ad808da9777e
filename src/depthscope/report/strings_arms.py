"""What the arms set, and the catalogue's names in Chinese; `strings` joins them to the rest."""

from __future__ import annotations

from depthscope.study.catalog import CATALOG

# key: (en, zh). Braces are filled by `str.format`.
_ARMS: dict[str, tuple[str, str]] = {
    "arms.section": ("The arms", "各组设置"),
    "arms.all": ("What each of the {count} arms sets", "全部 {count} 组各自的设置"),
    "arms.unless": ("unless an arm says otherwise", "未另行设置时"),
    "arms.nothing": ("sets nothing", "无另行设置"),
    "arms.user_code": ("user code", "用户代码"),
    "arms.et_al": (" et al.", " 等人"),
    "arms.case": ("at {where} alone. {text}", "仅在{where}处。{text}"),
    "arms.derived": ("Depth decided: {told}.", "由深度决定：{told}。"),
    "arms.derived_one": ("{what} {values}", "{what}：{values}"),
    "arms.at_depth": ("{value} at depth {depth}", "{value}（深度 {depth}）"),
    "arms.everywhere": ("{value} at every depth", "各深度均为 {value}"),
    "derived.fixup_scale": ("factor on the initial weights", "初始权重的系数"),
    "derived.tat_slope": ("slope of the leaky ReLU", "leaky ReLU 的斜率"),
    "derived.branch_scale": ("factor on each branch", "每条支路的系数"),
    "derived.survival_last": ("chance that the last branch is kept", "最后一条支路的保留概率"),
    "derived.expected_variance": ("expected variance at the end", "末端的预期方差"),
    "arms.field.gain": ("factor on the initialiser's deviation", "初始化标准差的系数"),
    "arms.field.stem_gain": ("the same for the first layer", "首层的该系数"),
    "arms.field.width": ("units a layer, or channels of the first stage", "每层单元数，或第一阶段的通道数"),
    "arms.field.zero_last_gamma": ("each branch's last scale starts at 0", "每条支路最后的缩放系数从 0 开始"),
    "arms.field.warmup_steps": ("steps over which the learning rate rises", "学习率线性上升的步数"),
    "arms.field.lr": ("learning rate", "学习率"),
    "arms.field.model_options.norm_ends_branch": (
        "a normaliser at each branch's end too",
        "每条支路末端也有归一化",
    ),
    "arms.field.model_options.bare": ("square layers alone: no stem, no head", "只有方阵层：没有输入层与输出层"),
    "arms.field.model_options.linear_end": ("a last layer without an activation", "末层没有激活函数"),
    "arms.field.model_options.slots": ("slots of the memory", "记忆的槽数"),
    "arms.field.model_options.bottleneck": ("blocks of three convolutions", "三个卷积组成的瓶颈块"),
}

_CHINESE = {
    "family": {
        "mlp": "全连接网络：输入层、`depth` 个宽 `width` 的方阵层、线性输出层",
        "cifar_resnet": "He 等人 2015 年的 CIFAR 系列，深度 6n+2，三个阶段的通道数为 1、2、4 倍 width",
        "preact_resnet": "预激活：归一化、激活、卷积，相加之后不再有运算；深度 6n+2，瓶颈块 9n+2",
        "densenet": "由瓶颈层组成的三个稠密块；`width` 为增长率；参数量不匹配",
        "nfnet": "无归一化的预激活网络，规则取自 NFNet，CIFAR 布局，深度 6n+2",
        "relational": "关系记忆：各槽相互注意，序列的每一步有 `depth` 个注意力块",
    },
    "shortcut": {
        "none": "普通网络：没有捷径",
        "identity": "h + act(hW + b)：普通层只多一个加号",
        "identity_2": "h + act(hW1 + b1)W2 + b2：两层的支路",
        "A": "选项 A：恒等；形状变化处下采样并补零；没有参数",
        "A_pool": "选项 A，以平均池化代替下采样，与 Fixup 相同",
        "B": "选项 B：恒等；形状变化处为带批归一化的 1x1 卷积",
        "C": "选项 C：每一块都用带批归一化的 1x1 卷积",
        "constant_scaling": "捷径与支路各乘一个常数",
        "exclusive_gate": "(1 - g(x)) x + g(x) F，g 为 1x1 卷积的 sigmoid：即 highway",
        "shortcut_gate": "(1 - g(x)) x + F：只在捷径上有门",
        "conv1x1": "每一块都以 1x1 卷积代替恒等，不带归一化",
        "dropout": "捷径上的 dropout",
        "highway": "x (1 - T) + H T，T 为与 H 的层同样大的一层的 sigmoid，其偏置小于 0",
        "dense": "每层看到此前所有输出的拼接，并增加 `growth` 个单元；参数量不匹配",
        "scaled": "x + F / sqrt(L)，L 为网络的块数",
        "rezero": "x + a F，每块一个可学习的 a，从 0 开始",
        "skipinit": "x + a F，支路末端一个可学习的 a，从 0 开始，代替批归一化",
        "stochastic_depth": "x + b F，b = 0 的概率线性上升，到最后一块为 1 - survival",
        "nfnet": "x + alpha s F(act(x) / 预期标准差)，s 可学习，从 0 开始",
    },
    "norm": {
        "none": "没有归一化",
        "batch": "激活之前的批归一化",
        "layer": "层归一化：对单个样本的全部通道与位置",
        "group": "组归一化：对单个样本的一组通道及其位置",
        "instance": "实例归一化：对单个样本一个通道的全部位置",
        "ws": "只有权重标准化：每个输出单元的权重均值为 0、方差为 1/fan_in",
        "ws_group": "权重标准化加组归一化，与其论文相同",
        "scaled_ws": "NFNet 的缩放权重标准化：g (W - mu)/sqrt(max(N var, 1e-4)) 乘以激活的尺度",
        "fixup": "代之以 Fixup 的标量：每个权重与激活之前一个偏置，每条支路一个乘数",
    },
    "activation": {
        "tanh": "双曲正切 tanh",
        "relu": "max(0, x)，即线性整流",
        "linear": "没有非线性",
        "gelu": "x Phi(x)，Phi 为正态分布函数",
        "silu": "x sigmoid(x)，即 Swish 函数",
        "tat": "定制的 leaky ReLU：sqrt(2/(1+a^2)) 乘以 leaky ReLU，其斜率 a 由深度决定",
    },
    "init": {
        "gaussian": "N(0, gain^2 / fan_in)，偏置为 0",
        "orthogonal": "gain 乘以正交矩阵（卷积核视作 [out, in k k] 的矩阵），偏置为 0",
        "xavier": "N(0, 2 gain^2 / (fan_in + fan_out))，即 Xavier 初始化",
        "he_fan_in": "N(0, 2 gain^2 / fan_in)，论文中的规则",
        "he_fan_out": "N(0, 2 gain^2 / fan_out)，作者代码中的规则",
        "delta_orthogonal": "卷积核只有中心不为零：gain 乘以列正交的矩阵",
        "tat": "delta-orthogonal 卷积核乘以 max(sqrt(out/in), 1)，与定制激活配套",
        "lsuv": "先正交，再逐层除以输出在一批样本上的标准差，直到它为 1",
        "fixup": "He 的规则乘以 L^(-1/(2m-2))（L 条 m 层的支路）；每条支路的最后一层与分类器为 0",
        "looks_linear": "镜像的正交块 [[W, -W], [-W, W]]：配合 ReLU，未训练的网络是线性的",
        "identity": "gain 乘以恒等矩阵，宽度不同处截断或补零；偏置为 0；不抽取随机数",
        "zero_branch": "高斯，但每条残差支路的最后一层为 0：每一块开始时就是其捷径",
        "constructed": "按同一配方训练的较浅网络，插入恒等层补足深度",
        "torch": "各模块自己的 reset_parameters，即 PyTorch 的默认值",
    },
    "data": {
        "spiral": "平面上交错的旋臂；各点由种子决定",
        "images": "十类合成图像，供测试用",
        "cifar10": "CIFAR-10 真实图像",
        "shakespeare": "莎士比亚戏剧，逐字符：预测下一个字符",
        "names": "人名，逐字母：预测下一个字母",
        "adding": "长度为 `depth` 的序列中两个带标记的数之和，在末尾作答",
        "copy": "十个符号，在 `depth` 步之后复述",
        "nth_farthest": "一组向量中，离向量 m 第 n 远的是哪一个",
        "identity_task": "答案就是输入；各点由种子决定",
    },
    "augment": {"none": "样本保持原样", "crop_flip": "补零后随机裁剪，以 1/2 的概率左右翻转"},
    "optimizer": {"sgd": "带动量的随机梯度下降；权重衰减作用于全部参数", "adam": "带偏差修正的 Adam"},
    "clip": {
        "none": "梯度保持原样",
        "norm": "全部梯度的总范数 |g| 过大时，乘以 max_norm / |g|",
        "agc": "自适应梯度裁剪：每个输出单元的 |G| 至多为 factor max(|W|, eps)；最后一层除外",
    },
    "schedule": {"constant": "学习率保持不变", "step": "在各里程碑（训练的比例）处乘以 `factor`"},
}

ARMS: dict[str, tuple[str, str]] = _ARMS | {
    f"name.{kind}.{name}": (entry.summary, _CHINESE[kind][name])
    for kind, names in CATALOG.items()
    if kind in _CHINESE
    for name, entry in names.items()
    if name in _CHINESE[kind]
}
