#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Make the site and the manual pages, warnings as errors; check the links of the site, and run mandoc.
# Pages: build-doc/html/index.html, build-doc/man (MANPATH=build-doc/man man rmem_mr_reg).

. "$(dirname -- "$0")/common.sh"
need doxygen mandoc sphinx-build

doc/site/site.py build-doc

man=build-doc/man
rm -rf $man
mkdir -p $man/man1 $man/man7
doc/man.py $man/man3
cp doc/man/*.1 $man/man1
cp doc/man/*.7 $man/man7
mapfile -t pages < <(grep -rL '^\.so ' $man)
mandoc -T lint -W warning "${pages[@]}"
# Each exported function has a page, and each page that is named exists.
sed -n 's/^\t\(rmem_\w*\);.*/man3\/\1.3/p' lib/*/version.map >build-doc/wanted
sed -nE 's/^\.Xr (([rd]\S*mem\S*) ([137])).*/man\3\/\2.\3/p; s/^\.so //p' $man/*/* >>build-doc/wanted
while read -r page; do
	[ -f "$man/$page" ] || die "no manual page $page"
done <build-doc/wanted
say "${#pages[@]} manual pages"
