/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Which processes belong to the command that is watched: those that it made, and those that they made. A process
 * joins when it is forked, so that one whose parent has gone since still belongs. User space enters processes that
 * were there before.
 */
#ifndef CACHETOP_FOLLOW_H
#define CACHETOP_FOLLOW_H

#include "core.h"

/* Set before load. */
const volatile bool with_follow = false; /* a command is watched */
const volatile u32 monitor_tgid = 0; /* who starts it */

/* Set by user space while it starts the command: the number of the run, else 0. */
volatile u32 spawning = 0;

/* The processes of the command, by thread-group id, and the run that they belong to. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u32);
} followed SEC(".maps");

/* The run that a process belongs to; 0: none. */
static __always_inline u32 run_of(u32 tgid)
{
	u32 *run;

	if (!with_follow)
		return 0;
	run = bpf_map_lookup_elem(&followed, &tgid);
	return run ? *run : 0;
}

#endif
