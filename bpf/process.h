/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What becomes of processes and threads that have a row. */
#ifndef CACHETOP_PROCESS_H
#define CACHETOP_PROCESS_H

#include "thread.h"

/* A process that has a row takes its new name. */
static __always_inline void on_exec(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct process *p = bpf_map_lookup_elem(&processes, &tgid);

	if (p) {
		describe_process(p);
		p->uid = (u32)bpf_get_current_uid_gid();
	}
}

static __always_inline void on_exit(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 id = bpf_get_current_pid_tgid();
	u32 tgid = id >> 32, tid = id;
	struct process *p;

	bpf_map_delete_elem(&threads, &tid);
	p = bpf_map_lookup_elem(&processes, &tgid);
	if (!p)
		return;
	describe_process(p);
	if (BPF_CORE_READ(task, signal, live.counter) == 0)
		p->dead = 1;
}

#endif
