/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * no_ptrace PROGRAM [ARGUMENT...]: run a program as in a container whose seccomp filter refuses
 * ptrace() and the calls that need its permission. devtools/check-dropin.sh compiles and runs it.
 */

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../holds.h"

int
main(int argc, char **argv)
{
	struct sock_filter filter[] = {
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 5, 0),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 4, 0),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 3, 0),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 2, 0),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_getfd, 1, 0),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	HOLDS(argc > 1);
	HOLDS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	HOLDS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	HOLDS(syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0) == -1 && errno == EPERM);
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
