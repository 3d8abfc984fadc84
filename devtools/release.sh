#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The checklist of a release: versions, ABI, all gates, long tests. What it saw is in
# build-release/COMMIT/report.md. A step that passed for this commit, with the same options, is not repeated,
# so that an interrupted run is resumed; random tests and fuzzing go on where they were.

. "$(dirname -- "$0")/common.sh"
need git meson ninja

seeds=100 ops=10000000 fuzz=86400 chaos=3600 mutants=500
gates=all

usage() {
	cat <<-EOF
	usage: ${0##*/} [--seeds N] [--ops N] [--fuzz SECONDS] [--chaos SECONDS]
	       [--mutants N] [--no-gates]
	  --seeds N         seeds of the random tests ($seeds)
	  --ops N           operations of each seed, 100000 or more ($ops)
	  --fuzz SECONDS    time of each fuzzer in total, in runs of up to an hour ($fuzz)
	  --chaos SECONDS   time of each test of chaos, and of storms of signals ($chaos)
	  --mutants N       mutants drawn from all functions, of which tests kill 95 % ($mutants)
	  --no-gates        omit devtools/test.sh all, platforms and compilers
	0 omits a step. Exit status: 0 if all steps passed, 1 if not. A step that is skipped has not passed.
	EOF
}

while [ $# != 0 ]; do
	case $1 in
	--seeds | --ops | --fuzz | --chaos | --mutants)
		[[ ${2-} =~ ^[0-9]{1,12}$ ]] || { usage >&2; exit 2; }
		declare "${1#--}=$2"
		shift
		;;
	--no-gates) gates= ;;
	-h | --help) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
	shift
done

((ops == 0 || ops >= 100000)) || die "--ops $ops: too few to reach all states"
[ -z "$(git status --porcelain)" ] || die "the tree has changes that are not committed"
commit=$(git rev-parse --short=12 HEAD)
version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" meson.build)
dir=build-release/$commit
mkdir -p "$dir"
failed=0

# step NAME COMMAND...: run it unless it passed already.
step() {
	local name=$1 started=$SECONDS rc=0 last
	shift
	if [ ! -f "$dir/$name.passed" ]; then
		say "$name"
		("$@") >"$dir/$name.log" 2>&1 </dev/null || rc=$?
		last=$(tail -n 1 "$dir/$name.log")
		case $rc in
		0) echo "$((SECONDS - started)) s, $last" >"$dir/$name.passed" ;;
		77) echo "SKIPPED: $last" >"$dir/$name.failed" && say "$name: $last" ;;
		*) echo "FAILED, status $rc" >"$dir/$name.failed" && tail -n 20 "$dir/$name.log" ;;
		esac
	fi
	[ -f "$dir/$name.passed" ] || failed=$((failed + 1))
}

versions() {
	local major minor patch
	IFS=. read -r major minor patch <<<"$version"
	grep -q "^#define RMEM_VERSION RMEM_VERSION_NUM($major, $minor, $patch)\$" lib/rmem/rmem_version.h ||
		die "rmem_version.h: not $version"
	[[ $(head -n 1 debian/changelog) == "rmem ($version) "* ]] || die "debian/changelog: not $version"
	grep -q "^## $version\b" CHANGELOG.md || die "CHANGELOG.md: no section of $version"
	! grep -q '^## Unreleased' CHANGELOG.md || die "CHANGELOG.md: a section Unreleased is left"
	say "$version"
}

# The previous release of this minor version, if any, has the same ABI, or less of it.
same_abi() {
	local tag dump tmp rc
	tag=$(git tag --list "v${version%.*}.*" --sort=-version:refname | grep -vx "v$version" | head -n 1)
	[ -n "$tag" ] || { say "no release of ${version%.*} yet" && return; }
	tmp=$(mktemp -d "${TMPDIR:-/tmp}/rmem-release.XXXXXX")
	for dump in devtools/abi/*.abi.gz; do
		git show "$tag:$dump" | gzip -dc >"$tmp/before.abi" || die "$tag has no $dump"
		gzip -dc "$dump" >"$tmp/now.abi"
		rc=0
		abidiff --no-added-syms "$tmp/before.abi" "$tmp/now.abi" || rc=$?
		[ $rc = 0 ] || die "$dump differs from $tag"
	done
	rm -r "$tmp"
	say "compatible with $tag"
}

# Each seed is a step, so an interrupted run is resumed at the first one that did not pass.
random() {
	RMEM_SEED=$1 RMEM_TEST_OPS=$ops DPDK_TEST=random_autotest build/test/dpdk-test-rmem \
		--no-huge -m 256 --no-pci --no-telemetry --no-shconf
}

# fuzz_all: adds its seconds to those of earlier runs.
fuzz_all() {
	local spent slice
	while spent=$(cat "$dir/fuzzed" 2>/dev/null || echo 0) && [ "$spent" -lt "$fuzz" ]; do
		slice=$((fuzz - spent < 3600 ? fuzz - spent : 3600))
		RMEM_FUZZ_SECONDS=$slice devtools/check-fuzz.sh || return
		echo $((spent + slice)) >"$dir/fuzzed"
	done
	say "$spent s of fuzzing, $(find build-fuzz/corpus* -type f | wc -l) inputs in the corpora"
}

long_tests() {
	RMEM_TEST_CHAOS_SECONDS=$chaos run_suite build long-tests --timeout-multiplier 0
}

# Processes that are killed, stopped and forked, again and again until the time is over.
storms() {
	local end=$((SECONDS + chaos)) seed=0
	while ((SECONDS < end)); do
		seed=$((seed + 1))
		RMEM_SEED=$seed test/dropin/all_to_all.sh usertools/rmem-run build/test/dropin/all_to_all 40 10 3600 ||
			return
	done
	say "$seed seeds, each by shared memory and by UDP"
}

# The tables of doc/scale.md; a run that breaks an invariant fails.
sim_tables() {
	build/test/sim/dpdk-sim --ms 1000 --table hosts --max-hosts 10000 || return
	build/test/sim/dpdk-sim --hosts 100 --ms 1000 --table timeout || return
	build/test/sim/dpdk-sim --hosts 10 --ms 500 --table loss || return
	build/test/sim/dpdk-sim --hosts 10 --ms 500 --timeout 8 --table loss || return
	build/test/sim/dpdk-sim --hosts 10 --ms 500 --table reorder || return
	build/test/sim/dpdk-sim --hosts 10 --table flap
}

report() {
	local file
	echo "# rmem $version, commit $commit"
	echo
	uname -srm
	(. /etc/os-release && echo "$PRETTY_NAME")
	echo "DPDK $(pkg-config --modversion libdpdk), $(gcc --version | head -n 1)"
	echo
	echo '| step | seconds, last line |'
	echo '| --- | --- |'
	for file in "$dir"/*.log; do
		file=${file%.log}
		echo "| ${file##*/} | $(cat "$file.passed" 2>/dev/null || cat "$file.failed") |"
	done
}

step versions versions
step abi same_abi
if [ -n "$gates" ]; then
	step gates devtools/test.sh all
	step platforms devtools/check-platforms.sh
	step platforms-sid devtools/check-platforms.sh sid
	step compilers devtools/check-compilers.sh
fi
setup_main_build >"$dir/build.txt" 2>&1 && ninja -C build >>"$dir/build.txt" 2>&1
[ "$ops" = 0 ] || for ((seed = 1; seed <= seeds; seed++)); do
	step "random-$seed-of-$ops" random $seed
done
[ "$chaos" = 0 ] || step "long-tests-of-$chaos-s" long_tests
[ "$chaos" = 0 ] || step "storms-of-$chaos-s" storms
step sim-tables sim_tables
[ "$mutants" = 0 ] || step "mutants-$mutants" devtools/mutate.py --sample "$mutants" --seconds 300
[ "$fuzz" = 0 ] || step "fuzz-of-$fuzz-s" fuzz_all
report >"$dir/report.md"
cat "$dir/report.md"
[ $failed = 0 ] || die "$failed steps have not passed"
