#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The recipes of doc/recipes.md in fresh roots of this machine's Debian, which stand for its images: the
# commands of the jobs, as root, and the Dockerfile, stage by stage; its last command runs as its user
# without capabilities. They clone a repository of this tree. The base root is kept in build-recipes/.

. "$(dirname -- "$0")/common.sh"
. devtools/apt.sh
. devtools/root.sh
need git
need_roots

dir=build-recipes
page=doc/recipes.md
failed=0

# recipe NAME: its block of the page.
recipe() {
	sed -n "/^<!-- recipe: $1 -->\$/,/^\`\`\`\$/p" "$page" | sed '1,2d; $d'
}

# commands NAME: those of the job, one script; what precedes the list is not run.
commands() {
	recipe "$1" | sed '1,/^ *\(script\|steps\):$/d' |
		sed -E 's/^ *- (run: )?//; /^\|$/d; s/^ +//'
}

# fresh NAME: a copy of the base root with the repository.
fresh() {
	rm -rf "${dir:?}/$1"
	cp -a "$dir/base" "$dir/$1"
}

make_base() {
	own_root "$dir"
	own_archive
	# shellcheck disable=SC2154  # set by own_archive
	make_root "$dir/base" "$suite"
	local repository=$dir/base/root/srv/rmem
	rm -rf "$repository"
	mkdir -p "$repository"
	tree_files '*' | xargs -0 cp -p --parents -t "$repository"
	git -C "$repository" init -q
	git -C "$repository" add -A
	git -C "$repository" -c user.name=rmem -c user.email=rmem@localhost commit -q -m tree
	export RMEM_URL=file:///srv/rmem
}

# run_job NAME: in a root, of which the shell ends with the first command that fails.
run_job() {
	local script
	script=$(commands "$1")
	[ "$(grep -c . <<<"$script")" = 6 ] || { echo "not 6 commands:" && echo "$script" && return 1; }
	fresh job
	in_root "$dir/job" bash -euxo pipefail -c "$script"
}

# run_docker: FROM begins a stage; the last one runs CMD.
run_docker() {
	local word rest stage='' command='' from source target user=()
	while read -r word rest; do
		say "$word $rest"
		case $word in
		FROM)
			stage=$(sed -n 's/.* AS //p' <<<"$rest")
			stage=docker-${stage:-last} user=()
			fresh "$stage"
			;;
		RUN) in_root "$dir/$stage" "${user[@]}" sh -c "$rest" || return ;;
		COPY)
			read -r from source target <<<"${rest#--from=}"
			cp -a "$dir/docker-$from/root$source" "$dir/$stage/root$target" || return
			;;
		USER)
			user=(setpriv "--reuid=$rest" "--regid=$rest" --clear-groups)
			user+=(--inh-caps=-all --bounding-set=-all --no-new-privs)
			;;
		CMD) command=$rest ;;
		ARG | '') ;;
		*) echo "not known: $word" && return 1 ;;
		esac
	done < <(recipe docker | sed -e ':a' -e '/\\$/{N;s/\\\n *//;ba' -e '}')
	[ -n "$command" ] && [ ${#user[@]} != 0 ] || return
	in_root "$dir/$stage" "${user[@]}" sh -c 'grep -E "^Cap(Prm|Eff|Bnd)" /proc/self/status; '"$command" || return
}

# step NAME COMMAND...: its output must have the results of both programs of ib_write_bw.
step() {
	local name=$1 rc=0 log=$dir/$1.log
	shift
	"$@" >"$log" 2>&1 || rc=$?
	if [ $rc = 0 ] && [ "$(grep -c '^ 65536 *100 ' "$log")" = 2 ]; then
		say "$name: ok"
	else
		tail -n 30 "$log"
		say "$name: FAILED, status $rc"
		failed=1
	fi
}

make_base
[ "$(commands gitlab)" = "$(commands github)" ] || die "$page: the jobs of GitLab and GitHub have other commands"
step job run_job gitlab
step docker run_docker
rm -rf "${dir:?}"/job "$dir"/docker-*
[ $failed = 0 ]
