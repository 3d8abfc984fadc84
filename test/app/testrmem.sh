# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Runs of dpdk-testrmem, for its tests. Sourced with their arguments, never run.

. "$(dirname -- "$0")/said.sh"

program=$(realpath -- "${1:?path to dpdk-testrmem}")
shift
enter_scratch

cpus=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)
# No shared configuration: other DPDK programs may run at the same time.
eal=(--no-huge --no-shconf -m 128 --no-pci --no-telemetry --log-level=lib.eal:error)
# shellcheck disable=SC2034  # used by run()
one=("${eal[@]}" --lcores "0@($cpus)")
# shellcheck disable=SC2034  # used by run()
none=("${eal[@]}" --lcores x)
# shellcheck disable=SC2034  # used by run()
three=("${eal[@]}" --lcores "(0-2)@($cpus)")

# run LCORES [options]: its output is in out and err, its exit status in rc.
run() {
	local -n lcores=$1
	shift
	"$program" "${lcores[@]}" -- "$@" >out 2>err </dev/null
	rc=$?
}

# `wants NAME RC REGEX`: the exit status, and one line of testrmem on stderr.
wants() {
	[ "$rc" = "$2" ] && said err "^testrmem: .*$3" && [ "$(grep -c '^testrmem: ' err)" = 1 ]
	verdict "$1" $?
}

# refused ERROR [options]
refused() {
	local error=$1
	shift
	run one "$@"
	wants "refused: ${*:-nothing}" 1 "$error"
}

# prompt LCORES COMMANDS [options]: write commands to the prompt.
prompt() {
	local -n prompt_lcores=$1
	local commands=$2
	shift 2
	printf '%b' "$commands" |
		"$program" "${prompt_lcores[@]}" -- -i "$@" >out 2>err
	rc=$?
}
