#!/bin/sh
# Finds a Docker engine for the tests, or starts one.
#
#   test/engine.sh [start]   use the engine that answers; else, as root on
#                            Debian, install and start one
#   test/engine.sh stop      stop the engine, if this script started it
#   test/engine.sh status    say what answers
#
# Says one line. Exits with 1 if no engine answers in the end.
set -eu

run="${TMPDIR:-/tmp}/dockgate-engine"
pidfile="$run/dockerd.pid"
log="$run/dockerd.log"

# The version of the engine that answers; fails if none does.
version() {
	command -v docker >/dev/null 2>&1 &&
		timeout 10 docker version --format '{{.Server.Version}} (API {{.Server.APIVersion}})' 2>/dev/null
}

# The process id of the engine that this script has started; fails if it has
# none that runs.
ours() {
	[ -s "$pidfile" ] || return 1
	pid=$(cat "$pidfile")
	[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ] && echo "$pid"
}

fail() {
	echo "engine: $1" >&2
	exit 1
}

start() {
	if found=$(version); then
		echo "engine: using $found"
		return
	fi
	[ -z "${DOCKER_HOST:-}" ] || fail "nothing answers at DOCKER_HOST=$DOCKER_HOST; start that engine or unset the variable"
	[ "$(uname -s)" = Linux ] || fail "no engine answers; start Docker Desktop"
	if ! command -v dockerd >/dev/null 2>&1; then
		[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 ||
			fail "no engine answers; install Docker (https://docs.docker.com/engine/install) and start it"
		mkdir -p "$run"
		{
			apt-get update &&
				DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends docker.io iptables ca-certificates
		} >"$run/apt.log" 2>&1 || fail "docker.io could not be installed, see $run/apt.log"
		# The package may have started it.
		if found=$(version); then
			echo "engine: installed and using $found"
			return
		fi
	fi
	[ "$(id -u)" = 0 ] || fail "no engine answers; start it with: sudo systemctl start docker"
	mkdir -p "$run"
	setsid dockerd --pidfile "$pidfile" >"$log" 2>&1 </dev/null &
	tries=0
	until found=$(version); do
		tries=$((tries + 1))
		[ "$tries" -lt 120 ] || fail "dockerd did not answer within a minute, see $log"
		[ "$tries" -lt 10 ] || ours >/dev/null || fail "dockerd ended, see $log"
		sleep 0.5
	done
	echo "engine: started $found"
}

stop() {
	if ! pid=$(ours); then
		echo "engine: none was started by this script"
		return
	fi
	kill "$pid"
	tries=0
	while ours >/dev/null; do
		tries=$((tries + 1))
		[ "$tries" -lt 120 ] || fail "dockerd does not end, see $log"
		sleep 0.5
	done
	rm -f "$pidfile"
	echo "engine: stopped"
}

status() {
	found=$(version) || fail "none answers"
	if pid=$(ours); then
		echo "engine: $found, started by this script as process $pid"
	else
		echo "engine: $found"
	fi
}

case "${1:-start}" in
start | stop | status) "${1:-start}" ;;
*) fail "unknown argument $1, want start, stop or status" ;;
esac
