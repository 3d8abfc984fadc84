#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# test_faults.sh PROGRAM EAL-OPTIONS: the sanitizer sees each fault in rte_malloc()ed memory, and
# none where there is none. check-asan.sh runs it with its preload.

set -euo pipefail

# expect FAULT TEXT: the program ends with an error whose report has the text.
expect() {
	local fault=$1 text=$2 output
	if output=$("${program[@]}" -- "$fault" 2>&1); then
		printf '%s was not noticed\n%s\n' "$fault" "$output"
		exit 1
	fi
	if ! grep -q "$text" <<<"$output"; then
		printf '%s: no "%s"\n%s\n' "$fault" "$text" "$output"
		exit 1
	fi
}

program=("$@")
"${program[@]}" -- none
expect overflow 'AddressSanitizer: heap-buffer-overflow'
expect underflow 'AddressSanitizer: use-after-poison'
expect use-after-free 'AddressSanitizer: heap-use-after-free'
expect double-free 'AddressSanitizer: attempting double-free'
expect leak 'LeakSanitizer: detected memory leaks'
