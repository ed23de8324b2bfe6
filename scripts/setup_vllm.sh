#!/usr/bin/env bash
# Make .venv-vllm: a CPU vLLM, TRL, verifiers and this project in one environment (2.3 GB, about two minutes).
# Does nothing when it is up to date. Usage: scripts/setup_vllm.sh [VENV]; PYTHON=... picks the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${1:-.venv-vllm}
python=${PYTHON:-python3}
stamp="$venv/.installed"
sources=(requirements/vllm.txt requirements/vllm-nodeps.txt scripts/setup_vllm.sh scripts/vllm_alias.py
    pyproject.toml environments/*/pyproject.toml)
wanted=$(cat "${sources[@]}" | sha256sum | cut -d' ' -f1)

if [[ -x "$venv/bin/vllm" && -f "$stamp" && "$(cat "$stamp")" == "$wanted" ]]; then
    echo "$venv is up to date"
    exit 0
fi

"$python" -c 'import sys; sys.exit(0 if sys.version_info[:2] == (3, 11) else "the pins in requirements/vllm.txt are for Python 3.11; set PYTHON")'
[[ -x "$venv/bin/python" ]] || "$python" -m venv "$venv"
install=("$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check)

echo "$venv: torch"
"${install[@]}" torch==2.13.0
echo "$venv: requirements/vllm.txt"
"${install[@]}" -r requirements/vllm.txt
echo "$venv: vLLM"
"${install[@]}" --no-deps -r requirements/vllm-nodeps.txt
"$venv/bin/python" scripts/vllm_alias.py
echo "$venv: this project"
projects=(-e .)
for folder in environments/*/ sandboxes/; do
    [[ -f "$folder/pyproject.toml" ]] && projects+=(-e "$folder")
done
"${install[@]}" --no-deps "${projects[@]}"
"$venv/bin/python" -c 'import importlib.metadata as m; print("vllm", m.version("vllm"), "torch", m.version("torch"))'
echo "$wanted" > "$stamp"
