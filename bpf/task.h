/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the running task is doing, as far as its registers and the kernel's marks on it say. */
#ifndef CACHETOP_TASK_H
#define CACHETOP_TASK_H

#include "core.h"

#define MADV_COLLAPSE 25

/* From 5.15, and with it plain loads. Before, the registers are at the top of the stack, without padding. */
static __always_inline bool knows_registers(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs);
}

/* The registers that the running thread, which has these flags, entered the kernel with; null for a thread of the kernel's own. */
static __always_inline struct pt_regs *entered_with(u32 flags)
{
	struct task_struct *task;

	if (flags & (PF_KTHREAD | PF_IO_WORKER))
		return 0;
	if (knows_registers()) {
		task = bpf_get_current_task_btf();
		return of_other_table(task) ? 0 : (void *)bpf_task_pt_regs(task);
	}
	task = (void *)bpf_get_current_task();
	if (BPF_CORE_READ(task, thread_info.status) & TS_COMPAT)
		return 0;
	return (void *)((u64)BPF_CORE_READ(task, stack) + STACK_SIZE - bpf_core_type_size(struct pt_regs));
}

/* One of them. */
#define REGISTER(regs, name) (knows_registers() ? (regs)->name : BPF_CORE_READ(regs, name))

/* Whether it is madvise or process_madvise with this advice. */
static __always_inline bool is_advice(struct pt_regs *regs, s64 nr, u32 advice)
{
	return (nr == NR_madvise && (u32)REGISTER(regs, CALL_ARG2) == advice) ||
	       (nr == NR_process_madvise && (u32)REGISTER(regs, CALL_ARG3) == advice);
}

/*
 * Whether a thread of the kernel is one that makes huge pages of what others have mapped: khugepaged, and DAMON's. Only threads of the
 * kernel are called what they are called for good.
 */
static __always_inline bool collapses_for_others(u32 flags)
{
	u64 name[2] = {};

	if (!(flags & PF_KTHREAD) || bpf_get_current_comm(name, sizeof(name)))
		return false;
	return (name[0] == 0x676170656775686bULL /* "khugepag" */ && name[1] == 0x6465 /* "ed" */) ||
	       name[0] << 8 == 0x646e6f6d61646b00ULL /* "kdamond" */;
}

/* Whether the running task makes a huge page of what is mapped of a file: what is missing is read in, as if for a read that ends. */
enum collapse {
	NO_COLLAPSE,
	COLLAPSE_BY_KERNEL,
	COLLAPSE_BY_ADVICE,
};

static __always_inline enum collapse collapses(void)
{
	u32 flags = running_flags();
	struct pt_regs *regs = entered_with(flags);

	if (!regs)
		return collapses_for_others(flags) ? COLLAPSE_BY_KERNEL : NO_COLLAPSE;
	return is_advice(regs, (s64)REGISTER(regs, CALL_NUMBER), MADV_COLLAPSE) ? COLLAPSE_BY_ADVICE
										: NO_COLLAPSE;
}

#endif
