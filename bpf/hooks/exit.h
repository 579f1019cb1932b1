/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs that see threads end. Whoever includes them has on_exit(). */
#ifndef CACHETOP_HOOKS_EXIT_H
#define CACHETOP_HOOKS_EXIT_H

SEC("?tp/sched/sched_process_exit")
int exit_tp(void *ctx)
{
	on_exit();
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int exit_btf(u64 *ctx)
{
	on_exit();
	return 0;
}

#endif
