/* verdict_names.c - the words for verdicts and signals. */
#include "lifecycle/verdict.h"

static const char *const verdict_names[VERDICT_COUNT] = {
	[VERDICT_SUCCEEDED] = "succeeded",
	[VERDICT_FAILED] = "failed",
	[VERDICT_SIGNALED] = "signaled",
	[VERDICT_TIMED_OUT] = "timed_out",
	[VERDICT_LIMIT_EXCEEDED] = "limit_exceeded",
	[VERDICT_CANCELLED] = "cancelled",
	[VERDICT_REFUSED] = "refused",
	[VERDICT_NOT_LAUNCHED] = "not_launched",
	[VERDICT_INTERRUPTED] = "interrupted",
	[VERDICT_BOUNDARY_ERROR] = "boundary_error",
};

/* By Linux's numbers on x86 and ARM; 32 and 33 are the C library's own, and real-time signals count from 34. */
static const char *const signal_names[] = {
	/*  0 */ "SIG?", "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP",
	/*  6 */ "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGSEGV",
	/* 12 */ "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD",
	/* 18 */ "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG",
	/* 24 */ "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO",
	/* 30 */ "SIGPWR", "SIGSYS", "SIG32", "SIG33", "SIGRTMIN", "SIGRTMIN+1",
	/* 36 */ "SIGRTMIN+2", "SIGRTMIN+3", "SIGRTMIN+4", "SIGRTMIN+5", "SIGRTMIN+6", "SIGRTMIN+7",
	/* 42 */ "SIGRTMIN+8", "SIGRTMIN+9", "SIGRTMIN+10", "SIGRTMIN+11", "SIGRTMIN+12", "SIGRTMIN+13",
	/* 48 */ "SIGRTMIN+14", "SIGRTMIN+15", "SIGRTMIN+16", "SIGRTMIN+17", "SIGRTMIN+18", "SIGRTMIN+19",
	/* 54 */ "SIGRTMIN+20", "SIGRTMIN+21", "SIGRTMIN+22", "SIGRTMIN+23", "SIGRTMIN+24", "SIGRTMIN+25",
	/* 60 */ "SIGRTMIN+26", "SIGRTMIN+27", "SIGRTMIN+28", "SIGRTMIN+29", "SIGRTMIN+30",
};

const char *verdict_name(enum verdict_kind kind)
{
	return (unsigned)kind < VERDICT_COUNT ? verdict_names[kind] : "?";
}

const char *verdict_signal_name(int signal)
{
	const int count = sizeof(signal_names) / sizeof(signal_names[0]);

	return signal_names[signal > 0 && signal < count ? signal : 0];
}
