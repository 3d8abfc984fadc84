# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154
# Programs of Debian that were written for hardware, each with a use of its own: rows of
# devtools/check-dropin.sh, which sources it. Each compares the data that arrives, and each proves
# that it passed through soft0, by the counters that its processes report (through()). An entry of
# doc/programs.md begins with program(). Rows that take long are of the set `all` (RMEM_DROPIN_ALL).

# through BYTES PROCESSES COMMAND...: the requests of its processes transfer that much, and at least
# so many processes take part.
through() {
	local bytes=$1 processes=$2 rc=0
	shift 2
	rm -f "$tmp/stats"
	RMEM_IBV_STATS=$tmp/stats "$@" || rc=$?
	[ $rc = 0 ] || return $rc
	cat "$tmp/stats" || return
	awk -v bytes="$bytes" -v processes="$processes" '
		{
			for (i = 1; i <= NF; i++)
				if (split($i, pair, "=") == 2)
					of[pair[1]] = pair[2]
			sum += of["bytes"]
			nb += of["send_wrs"] + of["recv_wrs"] + of["wire_rx_bytes"] > 0
		}
		END {
			printf "%d processes, %d bytes by soft0\n", nb, sum
			exit sum < bytes || nb < processes
		}' "$tmp/stats"
}

# of_all: whether the rows that take long run.
of_all() { [ -n "${RMEM_DROPIN_ALL:-}" ]; }

# script FILE [ARGUMENT...]: one of test/dropin, which gets the command rmem-run. It compares the data
# and checks the counters itself; it exits with 0, 1, or 77 if something is not installed.
script() { timeout --foreground -k 5 900 "test/dropin/$1" "$run" "${@:2}"; }

# The guest that migrates runs on the processor that QEMU emulates.
migrate() { timeout --foreground -k 5 900 test/dropin/migrate.py "$@" "$run" "$tmp/guest"; }
if has qemu-system-x86_64 qemu-system-x86 && [ "$(uname -m)" = x86_64 ]; then
	${CC:-cc} -m32 -O2 -ffreestanding -nostdlib -static -no-pie -fno-pic -fno-stack-protector \
		-fcf-protection=none -mgeneral-regs-only \
		-Wl,--build-id=none,-Ttext=0x101000,--section-start=.multiboot=0x100000 \
		-o "$tmp/guest" test/dropin/migrate_guest.c
	program QEMU qemu-system-x86 'live migration of a running guest by rdma:, also with rdma-pin-all; one side killed'
	try 'QEMU, migration' through $((48 << 20)) 2 migrate
	try 'the same, rdma-pin-all' through $((48 << 20)) 2 migrate --pin-all
	try 'the same, source killed' through 1 1 migrate --kill source
	try 'the same, target killed' through $((1 << 20)) 1 migrate --kill target
fi
