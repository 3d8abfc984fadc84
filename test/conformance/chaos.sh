#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# chaos.sh PROGRAM FIRST LAST [EAL OPTION...]: the conformance suite on soft0 with injected faults, for each
# seed from FIRST to LAST. Each case passes, or ends by a fault that was injected into it, with all objects
# released, and no rule of the oracle is broken (conf_oracle.c). RMEM_TEST_ARGS: further arguments of the device;
# RMEM_TEST_JOBS: seeds at once. A log that fails is printed: replay: repeats it.

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
recv:LOC_PROT_ERR@p:0.01
recv:LOC_LEN_ERR@p:0.01
recv:LATE@p:0.1@polls:20
cq:LATE@p:0.2@polls:20
cq:REORDER@p:0.1@polls:20
qp_modify:ENOMEM@p:0.01
post_send:ENOMEM@p:0.02
post_recv:ENOMEM@p:0.02
END
if [[ ${RMEM_TEST_ARGS:-} == *ip=* ]]; then
	echo 'port:FREEZE@p:0.001@ms:2'
else
	printf '%s\n' any:REM_OP_ERR@p:0.01 any:REM_INV_REQ_ERR@p:0.01
fi >>"$tmp/rules"

# one SEED: a run; 255, which ends xargs, if a case failed.
one() {
	local dir=$tmp/$1
	mkdir "$dir"
	"$program" "${eal[@]}" -- \
		--dev "soft0,chaos=file:$tmp/rules+seed:$1+log:$dir/log${RMEM_TEST_ARGS:+,$RMEM_TEST_ARGS}" \
		--faults "$dir/log" >"$dir/out" 2>&1 || { : >"$dir/failed"; return 255; }
	sed -n 's/ ended by injected faults$//p' "$dir/out" >>"$tmp/ended"
	rm -r "$dir"
}

export -f one
export program tmp
eal=("$@")
# Arrays are not exported.
seq "$first" "$last" | xargs -P "${RMEM_TEST_JOBS:-2}" -I{} bash -c "$(declare -p eal); one {}" 2>/dev/null
for failed in "$tmp"/*/failed; do
	[ -e "$failed" ] || break
	dir=${failed%/failed}
	echo "seed ${dir##*/}:"
	grep -B8 '^FAIL' "$dir/out" || tail -n 20 "$dir/out"
	cat "$dir/log"
	exit 1
done
nb=$(wc -l <"$tmp/ended")
ended=$(awk '{ n += $1 } END { print n + 0 }' "$tmp/ended")
echo "seeds $first to $last: $ended cases ended by injected faults"
# Each seed has a line, and some cases do, or nothing was injected.
[ "$nb" = $((last - first + 1)) ] && [ "$ended" != 0 ]
