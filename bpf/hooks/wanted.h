/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs that know what is to be counted, and for whom. */
#ifndef CACHETOP_HOOKS_WANTED_H
#define CACHETOP_HOOKS_WANTED_H

#include "../wanted.h"
#include "attach.h"

/* Run by the monitor, on itself. */
SEC("?raw_tp")
int look(void *ctx)
{
	on_look();
	return 0;
}

/* The same, where the file is one of btrfs. Loading it looks into the types of all modules. */
SEC("?raw_tp")
int look_btrfs(void *ctx)
{
	on_look_btrfs();
	return 0;
}

SEC("?tp_btf/cgroup_mkdir")
int group_btf(u64 *ctx)
{
	on_group((void *)number(ctx, 0), (void *)number(ctx, 1));
	return 0;
}

#endif
