#!/bin/sh
# Finds a Docker engine for the tests, or starts one; and starts others beside
# it, of which nothing is shared.
#
#   test/engine.sh [start]      use the engine that answers; else, as root on
#                               Debian, install and start one
#   test/engine.sh stop         stop the engine, if this script started it
#   test/engine.sh status       say what answers
#
#   test/engine.sh new [start]  start the newest engine on a socket of its own;
#                               the first time it is built, outside the tree
#   test/engine.sh new stop     stop it
#   test/engine.sh new status   say whether it answers
#   test/engine.sh new host     print its address, for DOCKER_HOST
#
#   test/engine.sh own DIR      become an engine of the caller's own that keeps
#                               all it has in DIR and listens on DIR/engine.sock;
#                               its containers reach nobody. It is the newest
#                               one if DOCKER_HOST names that, else Debian's
#   test/engine.sh own DIR end  put away what the engine that has ended kept
#                               outside of DIR
#
# Says one line. Exits with 1 if no engine answers in the end.
set -eu

run="${TMPDIR:-/tmp}/dockgate-engine"

# The newest engine, and the runtime that it needs.
new_engine=v2.0.0-beta.24
new_runc=v1.4.3
new_run="$run-new"
new_socket="$new_run/engine.sock"
new_bridge=dockgate-new
new_subnet=172.29.217.1/24
own_subnet=172.29.218.1/24
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dockgate-test/engine-$new_engine-$new_runc"

fail() {
	echo "engine: $1" >&2
	exit 1
}

# The version of the engine that answers; fails if none does.
version() {
	command -v docker >/dev/null 2>&1 &&
		timeout 10 docker ${1:+-H "$1"} version --format '{{.Server.Version}} (API {{.Server.APIVersion}})' 2>/dev/null
}

# The process id of the engine that has written a pid file; fails if it has
# ended.
alive() {
	[ -s "$1" ] || return 1
	pid=$(cat "$1")
	[ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ] && echo "$pid"
}

# Waits for an engine just started: pid file, log, address if it is not the
# default one.
await() {
	tries=0
	until found=$(version "${3:-}"); do
		tries=$((tries + 1))
		[ "$tries" -lt 120 ] || fail "dockerd did not answer within a minute, see $2"
		[ "$tries" -lt 10 ] || alive "$1" >/dev/null || fail "dockerd ended, see $2"
		sleep 0.5
	done
}

# Ends the engine of a pid file, if it runs.
end() {
	if ! pid=$(alive "$1"); then
		echo "engine: none was started by this script"
		return
	fi
	kill "$pid"
	tries=0
	while alive "$1" >/dev/null; do
		tries=$((tries + 1))
		[ "$tries" -lt 120 ] || fail "dockerd does not end, see $2"
		sleep 0.5
	done
	rm -f "$1"
	echo "engine: stopped"
}

# Installs Debian packages, as root on Debian.
install() {
	mkdir -p "$run"
	{
		apt-get update &&
			DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
	} >"$run/apt.log" 2>&1 || fail "$* could not be installed, see $run/apt.log"
}

debian() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

start() {
	if found=$(version); then
		echo "engine: using $found"
		return
	fi
	[ -z "${DOCKER_HOST:-}" ] || fail "nothing answers at DOCKER_HOST=$DOCKER_HOST; start that engine or unset the variable"
	[ "$(uname -s)" = Linux ] || fail "no engine answers; start Docker Desktop"
	if ! command -v dockerd >/dev/null 2>&1; then
		debian || fail "no engine answers; install Docker (https://docs.docker.com/engine/install) and start it"
		install docker.io iptables ca-certificates
		# The package may have started it.
		if found=$(version); then
			echo "engine: installed and using $found"
			return
		fi
	fi
	[ "$(id -u)" = 0 ] || fail "no engine answers; start it with: sudo systemctl start docker"
	mkdir -p "$run"
	setsid dockerd --pidfile "$run/dockerd.pid" >"$run/dockerd.log" 2>&1 </dev/null &
	await "$run/dockerd.pid" "$run/dockerd.log"
	echo "engine: started $found"
}

stop() { end "$run/dockerd.pid" "$run/dockerd.log"; }

status() {
	found=$(version) || fail "none answers"
	if pid=$(alive "$run/dockerd.pid"); then
		echo "engine: $found, started by this script as process $pid"
	else
		echo "engine: $found"
	fi
}

# Builds the newest engine and a runtime that is new enough for it from their
# source, once.
new_build() {
	[ -x "$cache/dockerd" ] && [ -x "$cache/runc" ] && return
	if ! pkg-config --exists libseccomp 2>/dev/null; then
		debian || fail "the newest engine needs libseccomp's headers and pkg-config to be built"
		install libseccomp-dev pkg-config gcc libc6-dev
	fi
	echo "engine: building $new_engine, which takes some minutes" >&2
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	{
		cd "$work" &&
			CGO_ENABLED=0 GOFLAGS=-mod=mod GOBIN="$work" go install -trimpath "github.com/moby/moby/v2/cmd/dockerd@$new_engine" &&
			# go install refuses a module that replaces others.
			go mod init build &&
			go get "github.com/opencontainers/runc@$new_runc" &&
			CGO_ENABLED=1 GOFLAGS=-mod=mod go build -trimpath -tags seccomp -o "$work/runc" github.com/opencontainers/runc
	} >"$new_run/build.log" 2>&1 || fail "the newest engine cannot be built, see $new_run/build.log"
	mkdir -p "$cache"
	mv "$work/dockerd" "$work/runc" "$cache/"
}

# The rules of the engine beside it drop the packets of networks that it does
# not know, also those between two containers of one network, which this lets
# pass.
bridged="-m physdev --physdev-is-bridged -m comment --comment dockgate-new -j ACCEPT"

new_open() {
	# shellcheck disable=SC2086 # the words of a rule
	if iptables -n -L DOCKER-USER >/dev/null 2>&1 && ! iptables -C DOCKER-USER $bridged 2>/dev/null; then
		iptables -I DOCKER-USER $bridged
	fi
}

# shellcheck disable=SC2086 # the words of a rule
new_close() { iptables -D DOCKER-USER $bridged 2>/dev/null || true; }

new_start() {
	mkdir -p "$new_run"
	new_open
	if found=$(version "unix://$new_socket"); then
		echo "engine: using $found at unix://$new_socket"
		return
	fi
	[ "$(uname -s) $(id -u)" = "Linux 0" ] || fail "the newest engine needs root on Linux"
	command -v containerd >/dev/null 2>&1 || fail "the newest engine needs containerd; run test/engine.sh first"
	new_build
	command -v ip >/dev/null 2>&1 || { debian && install iproute2; } || fail "the newest engine needs the command ip"
	ip link show "$new_bridge" >/dev/null 2>&1 || ip link add name "$new_bridge" type bridge
	ip address replace "$new_subnet" dev "$new_bridge"
	ip link set "$new_bridge" up
	# Without rules for packets: they are the other engine's.
	setsid "$cache/dockerd" --data-root "$cache/data" --exec-root "$new_run/exec" \
		--pidfile "$new_run/dockerd.pid" -H "unix://$new_socket" \
		--containerd-namespace dockgate-new --containerd-plugins-namespace dockgate-new-plugins \
		--bridge "$new_bridge" --iptables=false --ip6tables=false \
		--add-runtime "new=$cache/runc" --default-runtime new >"$new_run/dockerd.log" 2>&1 </dev/null &
	await "$new_run/dockerd.pid" "$new_run/dockerd.log" "unix://$new_socket"
	echo "engine: started $found at unix://$new_socket"
}

new_stop() {
	end "$new_run/dockerd.pid" "$new_run/dockerd.log"
	new_close
	ip link delete "$new_bridge" 2>/dev/null || true
}

new_status() {
	found=$(version "unix://$new_socket") || fail "the newest does not answer"
	echo "engine: $found at unix://$new_socket"
}

new_host() { echo "unix://$new_socket"; }

own_bridge() { echo "dg$(printf %s "$1" | cksum | cut -d ' ' -f 1)"; }

own() {
	[ -d "${1:-}" ] || fail "own needs a folder"
	[ "$(id -u)" = 0 ] || fail "an engine of one's own needs root"
	dockerd=dockerd
	dir=$1
	bridge=$(own_bridge "$dir")
	# An engine told to have no bridge would remove that of the one beside it.
	ip link show "$bridge" >/dev/null 2>&1 || ip link add name "$bridge" type bridge
	ip address replace "$own_subnet" dev "$bridge"
	set --
	if [ "${DOCKER_HOST:-}" = "$(new_host)" ]; then
		dockerd="$cache/dockerd"
		set -- --ip6tables=false --add-runtime "new=$cache/runc" --default-runtime new
	fi
	# The containerd of an engine that was killed has gone with it, but looks
	# alive where nobody reaps it.
	rm -f "$dir/exec/containerd/containerd.pid"
	exec "$dockerd" --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/dockerd.pid" -H "unix://$dir/engine.sock" \
		--containerd-namespace dockgate-own --containerd-plugins-namespace dockgate-own-plugins \
		--bridge "$bridge" --iptables=false --ip-forward=false --insecure-registry 127.0.0.0/8 "$@"
}

own_end() { ip link delete "$(own_bridge "$1")" 2>/dev/null || true; }

case "${1:-start}" in
start | stop | status) "${1:-start}" ;;
own)
	case "${3:-}" in
	"") own "${2:-}" ;;
	end) own_end "$2" ;;
	*) fail "unknown argument $3, want end" ;;
	esac
	;;
new)
	case "${2:-start}" in
	start | stop | status | host) "new_${2:-start}" ;;
	*) fail "unknown argument $2, want start, stop, status or host" ;;
	esac
	;;
*) fail "unknown argument $1, want start, stop, status, new or own" ;;
esac
