/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the monitor has done. */
#ifndef CACHETOP_HOOKS_CHORES_H
#define CACHETOP_HOOKS_CHORES_H

#include "../chores.h"

/* Run by the monitor, wherever it is. */
SEC("?raw_tp")
int chores_run(void *ctx)
{
	do_chores();
	return 0;
}

#endif
