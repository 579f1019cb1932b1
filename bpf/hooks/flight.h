/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs that see readers wait for pages in flight. */
#ifndef CACHETOP_HOOKS_FLIGHT_H
#define CACHETOP_HOOKS_FLIGHT_H

#include "../flight.h"
#include "attach.h"

/* Only a kprobe knows where the stack is. */

SEC("?kprobe.multi/io_schedule")
int wait_multi(struct pt_regs *ctx)
{
	on_wait(PT_REGS_SP(ctx));
	return 0;
}

/* Before 5.18. */
SEC("?kprobe/io_schedule")
int wait_kprobe(struct pt_regs *ctx)
{
	on_wait(PT_REGS_SP(ctx));
	return 0;
}

#endif
