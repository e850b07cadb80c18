#!/usr/bin/env bash
# Formatting of our C and C++ sources by clang-format 14 (.clang-format). `tests/check_format.sh --fix` rewrites them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -d '' files < <(find kernel plugins sdk tests -type f \( -name '*.h' -o -name '*.c' -o -name '*.cpp' \) -print0 | sort -z)
[[ ${#files[@]} -gt 0 ]] || { echo "check_format: no sources found" >&2; exit 1; }
if [[ "${1:-}" == "--fix" ]]; then
  exec clang-format-14 -i "${files[@]}"
fi
clang-format-14 --dry-run -Werror "${files[@]}"
echo "${#files[@]} files formatted as .clang-format says"
