#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# qemu-img and iscsi-inq with libiscsi, which rmem-run of BUILD runs on this machine, without root, log in to the iSER
# target of a guest's kernel (ib_isert of LIO, rdma_rxe), write to its disk, and read back. Runs in a user and network
# namespace. Exit status 77 where that is not permitted, or a program is not installed.
# usage: isert-host.sh KERNEL BUILD

kernel=$1
build=$2
. "$(dirname -- "$0")/host.sh"
run="$here/../../usertools/rmem-run"
rxe_ip=192.0.2.1
ip=192.0.2.2
target=iqn.2026-01.rmem:lio
size=$((8 << 20))
export RMEM_GUEST_MODULES='ib_isert target_core_file crc32c_generic'

# Commands of the guest.
guest() {
	mount -t configfs configfs /sys/kernel/config && cd /sys/kernel/config/target || exit
	mkdir -p core/fileio_0/disk && truncate -s $size /run/disk &&
		echo "fd_dev_name=/run/disk,fd_dev_size=$size" >core/fileio_0/disk/control &&
		echo 1 >core/fileio_0/disk/enable || exit
	group=iscsi/$target/tpgt_1
	mkdir iscsi && mkdir -p $group/lun/lun_0 &&
		ln -s /sys/kernel/config/target/core/fileio_0/disk $group/lun/lun_0/disk &&
		mkdir $group/np/$rxe_ip:3260 && echo 1 >$group/np/$rxe_ip:3260/iser || exit
	# libiscsi announces immediate data, and by iSER sends none.
	echo No >$group/param/ImmediateData &&
		echo 0 >$group/attrib/authentication &&
		echo 1 >$group/attrib/generate_node_acls &&
		echo 1 >$group/attrib/cache_dynamic_acls &&
		echo 0 >$group/attrib/demo_mode_write_protect &&
		echo 1 >$group/enable || exit
	echo 'guest: listening'
	busybox nc -l -p 7000 </dev/null >/tmp/sum || exit
	sync
	[ "$(sha256sum </run/disk)" = "$(cat /tmp/sum)" ] && echo 'guest: the disk has what was written'
}

case $3 in
guest)
	guest
	exit
	;;
inside) ;;
*)
	need iscsi-inq qemu-img
	if ! qemu-img --help | grep -q 'Supported formats:.* iscsi' && ! ls /usr/lib/*/qemu/block-iscsi.so >/dev/null 2>&1; then
		echo 'skipped: qemu-img has no iSCSI: install qemu-block-extra'
		exit 77
	fi
	enter "$kernel" "$build"
	;;
esac

make_tap $ip

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
head -c $size /dev/urandom >"$dir/data"
"$here/run.sh" --kernel "$kernel" --cpus 1 --timeout 600 \
	--tap rmem0 -- "$here/isert-host.sh" "$kernel" "$build" guest >"$dir/guest" 2>&1 &
guest=$!

# verdict NAME STATUS: print the case; a failure ends the test.
verdict() {
	[ "$2" = 0 ] && echo "ok: $1" && return
	kill $guest 2>/dev/null
	wait $guest
	status=$?
	tail -n 100 "$dir/guest" "$dir/out"
	[ $status = 77 ] && exit 77
	echo "FAILED, status $2: $1; status of the guest $status"
	exit 1
}

# libiscsi 1.19 reads memory of malloc() that it has not set, and meson fills that.
unset MALLOC_PERTURB_

# initiator COMMAND...: here.
initiator() { timeout 300 "$run" --ip $ip "$@" >"$dir/out" 2>&1; }

# libiscsi has buffers of 256 KiB for iSER, and QEMU does not know.
disk=driver=blkdebug,max-transfer=131072,image.driver=iscsi,image.transport=iser
disk=$disk,image.portal=$rxe_ip:3260,image.target=$target,image.lun=0,image.initiator-name=iqn.2026-01.rmem:host

until grep -q '^guest: listening' "$dir/guest" || ! kill -0 $guest 2>/dev/null; do sleep 0.1; done
initiator iscsi-inq iser://$rxe_ip:3260/$target/0 && grep -q '^Vendor:LIO-ORG' "$dir/out"
verdict 'iscsi-inq: the disk of LIO' $?
initiator qemu-img convert -n -f raw --target-image-opts "$dir/data" "$disk"
verdict 'qemu-img: write' $?
initiator qemu-img convert --image-opts -O raw "$disk" "$dir/back" && cmp "$dir/data" "$dir/back"
verdict 'qemu-img: read back what was written' $?
bash -c "sha256sum <'$dir/data' >/dev/tcp/$rxe_ip/7000"
wait $guest && grep -q '^guest: the disk has' "$dir/guest"
verdict 'the disk of the guest has what was written' $?
echo PASS
