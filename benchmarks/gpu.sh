#!/usr/bin/env bash
# The day a GPU is at hand. One call under 8 minutes says in a table what the CUDA path does (benchmarks/gpu.py); OUT
# names a folder for the same in numbers. What installing the packages takes, where they are not here, comes out of it.
#
# With STUDY=full it goes on with the four networks of the full CIFAR-10 study (and option B) at one seed, and a table
# of them: that takes longer. It is resumable: called again it does only what is missing. DATA names the folder of the
# images; RESULTS where the records go (default results/cifar10-full). WORKERS runs share the GPU (default 6).
set -euo pipefail
cd "$(dirname "$0")/.."
: "${PYTHON:=python3}" "${RESULTS:=results/cifar10-full}" "${WORKERS:=6}" "${STUDY:=}"
"$PYTHON" -c "import depthscope, torch" 2>/dev/null || "$PYTHON" -m pip install --quiet --editable '.[torch]'
# Rows that are begun may be a minute late. Whatever hangs is ended; the rows before it are in OUT.
left=$((400 - SECONDS > 60 ? 400 - SECONDS : 60))
limit=()
if command -v timeout >/dev/null; then limit=(timeout --kill-after=5 "$((left + 70))"); fi
code=0
${limit[@]+"${limit[@]}"} "$PYTHON" benchmarks/gpu.py --seconds "$left" ${OUT:+--out "$OUT"} || code=$?
# A row that failed (1) is no reason to leave out the study; no GPU (2) is.
if [ "$STUDY" != full ] || [ "$code" = 2 ]; then exit "$code"; fi
"$PYTHON" -c "from depthscope.cli.main import main; main()" run cifar10 --size full --seeds 1 --device cuda --workers "$WORKERS" --out "$RESULTS" ${DATA:+--data "$DATA"}
"$PYTHON" - "$RESULTS/table.csv" <<'PY'
import csv
import sys

published = {("plain", "20"): (95.1, 88.7), ("plain", "56"): (84.0, 79.9), ("B", "20"): (97.4, 90.4), ("B", "56"): (99.0, 91.7)}
print(f"{'network':10} {'train':>7} {'test':>7}   published (one seed, option B): train, test")
for row in csv.DictReader(open(sys.argv[1])):
    train, test = (100 * float(row[key]) if row[key] else float("nan") for key in ("train_accuracy", "test_accuracy"))
    print(f"{row['arm']}-{row['depth']:8} {train:7.2f} {test:7.2f}   {published.get((row['arm'], row['depth']), '')}")
PY
