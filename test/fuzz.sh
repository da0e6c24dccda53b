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
	if out=$(go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 1s -parallel 1 "$package" 2>&1) || over "$out"; then
		printf 'ok    %s %s: %s\n' "${package#*/*/*/}" "$name" "$(sed -n 's/^fuzz: elapsed: //p' <<<"$out" | tail -n 1)"
	else
		printf '%s\nFAIL  %s %s\n' "$out" "${package#*/*/*/}" "$name" >&2
		return 1
	fi
}

# Reports whether a run has failed only because its time was over while an
# input was tried (go.dev/issue/75804, mended in Go 1.27). What is found is
# written to a file, which go test says.
over() {
	[[ $1 != *'Failing input'* && $(sed -n '/^--- FAIL: /,/^FAIL$/p' <<<"$1") =~ ^'--- FAIL: '[A-Za-z0-9_]+' ('[0-9.]+s\)$'\n''    context deadline exceeded'$'\nFAIL'$ ]]
}
export -f fuzz over

targets=$(go test -list "^Fuzz.*${2:-}" ./... | awk '/^Fuzz/ { names[++n] = $1 } $1 == "ok" { for (; n; n--) print $2, names[n] }')
[ -n "$targets" ] || { echo "fuzz: no such target" >&2; exit 1; }
xargs -P "$(getconf _NPROCESSORS_ONLN)" -L 1 bash -euo pipefail -c 'fuzz "$@"' fuzz "${1:-10s}" <<<"$targets"
