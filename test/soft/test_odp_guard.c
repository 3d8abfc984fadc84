/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/*
 * The signal handler that guards accesses to memory of keys: it is installed from the first MR
 * of a device on until that is closed, and the program's own handlers, installed before or after,
 * work as if it were not there.
 */

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "fixture_odp.h"

static sigjmp_buf back;
static volatile sig_atomic_t nb_signals;
static struct sigaction chained;

static void
own_handler(int sig)
{
	nb_signals = nb_signals + 1;
	siglongjmp(back, sig);
}

static void
chaining_handler(int sig, siginfo_t *info, void *context)
{
	nb_signals = nb_signals + 1;
	if ((chained.sa_flags & SA_SIGINFO) != 0)
		chained.sa_sigaction(sig, info, context);
}

static void
count_signal(int sig)
{
	RTE_SET_USED(sig);
	nb_signals = nb_signals + 1;
}

static int
install(int sig, void (*handler)(int), struct sigaction *old)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	return sigaction(sig, &action, old);
}

static struct sigaction
installed(int sig)
{
	struct sigaction now;

	memset(&now, 0, sizeof(now));
	sigaction(sig, NULL, &now);
	return now;
}

/* Cases make the device themselves, as it installs the handler. */
static void
setup(void)
{
	fx_setup_odp();
	fx_need_guard();
	nb_signals = 0;
	fx_teardown();
}

static void
take_mr(void)
{
	fx_odp.mr = fx_mr(fx.a.pd, fx_odp.mem, FX_ODP_SIZE, FX_ODP_ACCESS);
}

static void
expect_installed(void (*handler)(int), bool is_ours)
{
	TEST_EQ(installed(SIGSEGV).sa_handler != handler, is_ours);
	TEST_EQ(installed(SIGBUS).sa_handler != handler, is_ours);
}

static void
run_device(void)
{
	fx_setup_dev();
	expect_installed(count_signal, false);
	fx_teardown();
	fx_setup_odp();
	expect_installed(count_signal, true);
	TEST_OK(fx_release(fx_odp.mr));
	expect_installed(count_signal, true);
	fx_teardown();
	expect_installed(count_signal, false);
}

TEST(odp_guard, handler_is_installed_with_the_first_mr)
{
	struct sigaction segv, bus;
	int result;

	TEST_OK(install(SIGSEGV, count_signal, &segv));
	TEST_OK(install(SIGBUS, count_signal, &bus));
	result = TEST_TRY(run_device());
	sigaction(SIGSEGV, &segv, NULL);
	sigaction(SIGBUS, &bus, NULL);
	TEST_RUN(result);
}

TEST(odp_guard, device_without_a_guard_installs_no_handler)
{
	struct rmem_dev *dev = fx_dev("soft8", "odp_guard=0");
	struct sigaction old;

	TEST_OK(install(SIGSEGV, count_signal, &old));
	fx_mr(fx_pd(dev), fx_mem(FX_PAGE, FX_PAGE), FX_PAGE, FX_ACCESS);
	TEST_ASSERT(installed(SIGSEGV).sa_handler == count_signal);
	sigaction(SIGSEGV, &old, NULL);
}

/* With sanitize=1, by the first MR: reports of unmapped memory need the handler. */
TEST(odp_guard, device_that_sanitizes_without_a_guard_logs_it_once)
{
	static const char *const args[] = {"odp_guard=0", "odp_guard=0,sanitize=1"};
	const char *line, *log;
	char name[] = "soft7";
	unsigned int i;

	for (i = 0; i < RTE_DIM(args); i++) {
		struct rmem_pd *pd;

		name[4] = (char)('7' + i);
		pd = fx_pd(fx_dev(name, args[i]));
		fx_log_begin();
		fx_mr(pd, fx_mem(FX_PAGE, FX_PAGE), FX_PAGE, FX_ACCESS);
		fx_mr(pd, fx_mem(FX_PAGE, FX_PAGE), FX_PAGE, FX_ACCESS);
		log = fx_log_end();
		line = strstr(log, "raises a signal: odp_guard=0");
		TEST_EQ(line != NULL, i == 1);
		TEST_ASSERT(line == NULL || strstr(line + 1, "raises a signal") == NULL);
	}
}

static void
expect_own_fault(int sig, const volatile uint8_t *at)
{
	int got = sigsetjmp(back, 1);

	if (got == 0) {
		(void)*at;
		TEST_ASSERT(!"no signal was raised");
	}
	TEST_EQ(got, sig);
}

/* Also for the second time: the mask is that of the program. */
static void
expect_own_faults(int sig, const volatile uint8_t *at)
{
	expect_own_fault(sig, at);
	expect_own_fault(sig, at);
	TEST_EQ(nb_signals, 2);
	TEST_STATUS(fx_odp_write(1, 64), RMEM_WC_SUCCESS);
	TEST_OK(fx_odp_protect(1, PROT_NONE));
	TEST_STATUS(fx_odp_write(1, 64), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(nb_signals, 2);
}

TEST(odp_guard, earlier_sigsegv_handler_is_called_for_other_faults)
{
	struct sigaction old;
	int result;

	TEST_OK(install(SIGSEGV, own_handler, &old));
	fx_setup_odp();
	TEST_OK(fx_odp_protect(3, PROT_NONE));
	result = TEST_TRY(expect_own_faults(SIGSEGV, fx_odp_page(3)));
	fx_teardown();
	sigaction(SIGSEGV, &old, NULL);
	TEST_RUN(result);
}

TEST(odp_guard, earlier_sigbus_handler_is_called_for_other_faults)
{
	int fd = memfd_create("rmem_test_guard", 0);
	struct sigaction old;
	int result;
	void *at;

	TEST_ASSERT(fd >= 0);
	TEST_OK(install(SIGBUS, own_handler, &old));
	fx_setup_odp();
	at = fx_odp_page(3);
	TEST_ASSERT(mmap(at, FX_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at);
	result = TEST_TRY(expect_own_faults(SIGBUS, at));
	fx_teardown();
	sigaction(SIGBUS, &old, NULL);
	close(fd);
	TEST_RUN(result);
}

/* Signals of kill() are not handled, wherever they interrupt. */
TEST(odp_guard, sent_signals_call_the_earlier_handler)
{
	struct sigaction old;

	TEST_OK(install(SIGSEGV, count_signal, &old));
	fx_setup_odp();
	raise(SIGSEGV);
	TEST_EQ(nb_signals, 1);
	fx_teardown();
	sigaction(SIGSEGV, &old, NULL);
}

static sigset_t blocked; /* in note_mask() */

static void
note_mask(int sig)
{
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	count_signal(sig);
}

/* As the kernel would have called it: sigaction(2). */
TEST(odp_guard, earlier_handler_has_its_own_mask)
{
	static const int flags[] = {0, SA_NODEFER};
	struct sigaction old, action;
	unsigned int i;

	for (i = 0; i < RTE_DIM(flags); i++) {
		memset(&action, 0, sizeof(action));
		action.sa_handler = note_mask;
		action.sa_flags = flags[i];
		sigaddset(&action.sa_mask, SIGUSR1);
		TEST_OK(sigaction(SIGSEGV, &action, &old));
		fx_setup_odp();
		raise(SIGSEGV);
		fx_teardown();
		sigaction(SIGSEGV, &old, NULL);
		TEST_EQ(nb_signals, i + 1);
		TEST_EQ(sigismember(&blocked, SIGSEGV), flags[i] == 0);
		TEST_EQ(sigismember(&blocked, SIGUSR1), 1);
		TEST_EQ(sigismember(&blocked, SIGUSR2), 0);
	}
}

TEST(odp_guard, ignored_sent_signals_stay_ignored)
{
	struct sigaction old;

	TEST_OK(install(SIGBUS, SIG_IGN, &old));
	fx_setup_odp();
	raise(SIGBUS);
	fx_teardown();
	TEST_ASSERT(installed(SIGBUS).sa_handler == SIG_IGN);
	sigaction(SIGBUS, &old, NULL);
}

/* A later handler that hands on what is not its own, as is the custom. */
TEST(odp_guard, later_handler_that_chains_is_supported)
{
	struct sigaction action;

	fx_setup_odp();
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = chaining_handler;
	action.sa_flags = SA_SIGINFO;
	TEST_OK(sigaction(SIGSEGV, &action, &chained));
	TEST_STATUS(fx_odp_write(1, 64), RMEM_WC_SUCCESS);
	TEST_OK(fx_odp_protect(1, PROT_NONE));
	TEST_STATUS(fx_odp_write(1, 100), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(nb_signals, 1);
	TEST_OK(sigaction(SIGSEGV, &chained, NULL));
}

/* With another handler on top there is no guard for new MRs: the kernel copies. */
TEST(odp_guard, later_handler_makes_new_mrs_use_kernel_copies)
{
	const uint32_t access = FX_ODP_ACCESS & ~RMEM_ACCESS_REMOTE_ATOMIC;
	struct rmem_mr *first, *mr = NULL;
	struct sigaction old;

	fx_setup_odp();
	first = fx_odp.mr;
	TEST_OK(install(SIGSEGV, own_handler, &old));
	TEST_ERR(rmem_mr_reg(fx.a.pd, fx_odp.mem, FX_ODP_SIZE, 0, FX_ODP_ACCESS, &mr), EBUSY);
	fx_odp.mr = fx_mr(fx.a.pd, fx_odp.mem, FX_ODP_SIZE, access);
	TEST_ERR(rmem_mr_rereg(fx_odp.mr, RMEM_REREG_CHANGE_ACCESS, NULL, NULL, 0, FX_ODP_ACCESS,
				 NULL),
			EBUSY);
	fx_fill(fx.b.buf, 3 * FX_PAGE, 1);
	TEST_STATUS(fx_odp_write(1, 3 * FX_PAGE), RMEM_WC_SUCCESS);
	TEST_MEM(fx_odp_page(1), fx.b.buf, 3 * FX_PAGE);
	TEST_OK(fx_odp_protect(2, PROT_NONE));
	TEST_STATUS(fx_odp_write(1, 3 * FX_PAGE), RMEM_WC_REM_ACCESS_ERR);
	TEST_EQ(nb_signals, 0);
	/* Ours stays below it, as it may be called from there. */
	TEST_OK(fx_release(first));
	TEST_ASSERT(installed(SIGSEGV).sa_handler == own_handler);
	sigaction(SIGSEGV, &old, NULL);
	fx_reconnect();
	take_mr();
	TEST_STATUS(fx_odp_write(2, 64), RMEM_WC_REM_ACCESS_ERR);
}

/* As a thread that waits for signals by signalfd() or sigwait() does. */
static void *
write_with_all_blocked(void *arg)
{
	int *result = arg;
	sigset_t set;

	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (rte_thread_register() != 0)
		return NULL;
	*result = fx_odp_write(1, 64);
	pthread_sigmask(SIG_BLOCK, NULL, &set);
	if (!sigismember(&set, SIGUSR1))
		*result = -EINVAL;
	rte_thread_unregister();
	return NULL;
}

/* Also the second thread that has the same number. */
TEST(odp_guard, fault_in_a_thread_that_blocks_sigsegv_is_an_error)
{
	pthread_t thread;
	uint32_t i;
	int result;

	fx_setup_odp();
	TEST_STATUS(fx_odp_write(1, 64), RMEM_WC_SUCCESS);
	for (i = 0; i < 2; i++) {
		TEST_OK(fx_odp_protect(1, PROT_NONE));
		result = -ENOENT;
		TEST_OK(pthread_create(&thread, NULL, write_with_all_blocked, &result));
		TEST_OK(pthread_join(thread, NULL));
		TEST_STATUS(result, RMEM_WC_REM_ACCESS_ERR);
		fx_reconnect();
		TEST_OK(fx_odp_protect(1, PROT_READ | PROT_WRITE));
		TEST_STATUS(fx_odp_write(1, 64), RMEM_WC_SUCCESS); /* known again */
	}
}

TEST_SUITE(odp_guard, setup, fx_teardown);
