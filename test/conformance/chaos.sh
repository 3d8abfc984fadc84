#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# chaos.sh PROGRAM FIRST LAST [EAL OPTION...]: the conformance suite on soft0 with injected faults, for each
# seed from FIRST to LAST. Each case passes, or ends by a fault that was injected into it, with all objects
# released. RMEM_TEST_ARGS: further arguments of the device. A log that fails is printed: replay: repeats it.

set -uo pipefail
program=$1 first=$2 last=$3
shift 3
tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-chaos.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

# Shares such that about half of the cases end early. Cases do not check each creation.
cat >"$tmp/rules" <<'END'
any:LOC_PROT_ERR@p:0.02
any:LOC_QP_OP_ERR@p:0.01
any:RETRY_EXC_ERR@p:0.03
any:RNR_RETRY_EXC_ERR@p:0.05
any:REM_ACCESS_ERR@p:0.03
any:BAD_RESP_ERR@p:0.03
any:MW_BIND_ERR@p:0.05
any:QP_FATAL@p:0.01
any:CQ_ERR@p:0.01
recv:RNR_NAK@p:0.1@naks:3
cq:LATE@p:0.2@polls:20
qp_modify:ENOMEM@p:0.01
post_send:ENOMEM@p:0.02
post_recv:ENOMEM@p:0.02
END
[[ ${RMEM_TEST_ARGS:-} == *ip=* ]] || cat >>"$tmp/rules" <<'END'
any:REM_OP_ERR@p:0.01
any:REM_INV_REQ_ERR@p:0.01
END

ended=0
for ((seed = first; seed <= last; seed++)); do
	rules=file:$tmp/rules+seed:$seed+log:$tmp/log
	if ! "$program" "$@" -- --dev "soft0,chaos=$rules${RMEM_TEST_ARGS:+,$RMEM_TEST_ARGS}" \
		--faults "$tmp/log" >"$tmp/out" 2>&1; then
		echo "seed $seed:"
		grep -B8 '^FAIL' "$tmp/out" || tail -n 20 "$tmp/out"
		cat "$tmp/log"
		exit 1
	fi
	ended=$((ended + $(sed -n 's/ ended by injected faults$//p' "$tmp/out")))
done
echo "seeds $first to $last: $ended cases ended by injected faults"
# Some do, or nothing was injected.
[ $ended != 0 ]
