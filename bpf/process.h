/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Threads that get another name, or end: their row is closed, and the next event makes a new one. */
#ifndef CACHETOP_PROCESS_H
#define CACHETOP_PROCESS_H

#include "thread.h"

/* prctl or exec; called by the thread itself or, through /proc/PID/comm, by another. */
static __always_inline void on_rename(u64 task)
{
	end_row(task);
}

static __always_inline void on_exit(void)
{
	end_row(bpf_get_current_task());
}

#endif
