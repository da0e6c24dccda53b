#!/usr/bin/env bash
# Lets every fuzz target of the tree run for a time, as many at once as there
# are processors:
#
#	test/fuzz.sh [TIME [NAME]]
#
# TIME is 10s, and NAME a pattern for their names. An input that fails is kept
# in testdata/fuzz of its package, where every later go test tries it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fuzz() {
	local time=$1 package=$2 name=$3 out
	# What one minimizes for long is a loss for what the others find.
	if out=$(go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 1s -parallel 1 "$package" 2>&1); then
		printf 'ok    %s %s: %s\n' "${package#*/*/*/}" "$name" "$(sed -n 's/^fuzz: elapsed: //p' <<<"$out" | tail -n 1)"
	else
		printf '%s\nFAIL  %s %s\n' "$out" "${package#*/*/*/}" "$name" >&2
		return 1
	fi
}
export -f fuzz

targets=$(go test -list "^Fuzz.*${2:-}" ./... | awk '/^Fuzz/ { names[++n] = $1 } $1 == "ok" { for (; n; n--) print $2, names[n] }')
[ -n "$targets" ] || { echo "fuzz: no such target" >&2; exit 1; }
xargs -P "$(getconf _NPROCESSORS_ONLN)" -L 1 bash -euo pipefail -c 'fuzz "$@"' fuzz "${1:-10s}" <<<"$targets"
