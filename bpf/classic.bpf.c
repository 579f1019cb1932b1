// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The classic method: four counts, no request and no state. bcc's cachestat does its arithmetic with them; here user
 * space does (src/classic/model.rs). Unlike bcc, a large folio counts as the pages that it has.
 *
 * Names end in the way they attach: _multi (kprobe.multi), _kprobe (perf kprobe), _fentry (BPF trampoline), _tp
 * (classic tracepoint), _btf (BTF tracepoint). Nothing is loaded unless the plan (src/classic/plan.rs) chooses it.
 */
#include "core.h"

/* src/classic/counts.rs is the other half; a test compares them. */
enum classic_counter {
	K_ADDED, /* pages: filemap_add_folio, add_to_page_cache_lru */
	K_ACCESSED, /* pages: folio_mark_accessed, mark_page_accessed */
	K_DIRTIED, /* pages: folio_account_dirtied, account_page_dirtied */
	K_BUFFER_DIRTIED, /* events: mark_buffer_dirty */
	K_LOST_PROCESSES, /* events lost to rows, not to totals: no room in the process table */
	K_MAX,
};

/* Set before load. */
const volatile bool added_is_first = false; /* add_to_page_cache_lru: the page is its first argument */

/* Set once everything is attached: until then no event counts. */
volatile bool ready = false;

/* The monitor's own process as the kernel numbers it, left out; 0: counted like any other. */
volatile u32 self_tgid = 0;

struct classic {
	u64 v[K_MAX];
};

struct classic_process {
	struct classic counts;
	char comm[16];
	u32 uid;
	u32 dead; /* the last thread is gone: user space may forget it once it has read the last values */
};

/* Totals never depend on the process table having room. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct classic);
} classic_totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct classic_process);
} classic_processes SEC(".maps");

static __always_inline void describe(struct classic_process *p)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	bpf_core_read_str(p->comm, sizeof(p->comm), &leader->comm);
}

static __always_inline bool last_thread_gone(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, signal, live.counter) == 0;
}

static __noinline struct classic_process *new_row(u32 tgid)
{
	struct classic_process p = {};

	p.uid = running_user();
	/* What is mapped is marked accessed when it is unmapped, from 6.16 on after the tracepoint of the exit. */
	p.dead = last_thread_gone();
	describe(&p);
	/* It may be there by now: another thread of the process was as quick. */
	bpf_map_update_elem(&classic_processes, &tgid, &p, BPF_NOEXIST);
	return bpf_map_lookup_elem(&classic_processes, &tgid);
}

static __always_inline void count(u32 counter, u64 n)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32, zero = 0;
	struct classic_process *p;
	struct classic *total;

	if (!ready || (self_tgid && tgid == self_tgid))
		return;
	total = bpf_map_lookup_elem(&classic_totals, &zero);
	if (!total)
		return;
	/* Atomic: an interrupt may count in the middle of this. */
	__sync_fetch_and_add(&total->v[counter], n);
	p = bpf_map_lookup_elem(&classic_processes, &tgid);
	if (!p)
		p = new_row(tgid);
	if (p)
		__sync_fetch_and_add(&p->counts.v[counter], n);
	else
		__sync_fetch_and_add(&total->v[K_LOST_PROCESSES], 1);
}

static __always_inline void count_folio(u32 counter, void *folio)
{
	count(counter, 1ULL << (folio_order_of(folio) & 31));
}

/* ---- added ---- */

/* Both are loaded, then one is taken: the verifier allows no arithmetic on the context, which clang would choose. */
static __always_inline void *added_folio(u64 first, u64 second)
{
	return (void *)(added_is_first ? first : second);
}

#define ARGUMENT(place) (*(volatile typeof(place) *)&(place))

SEC("?kprobe.multi/filemap_add_folio")
int added_multi(struct pt_regs *ctx)
{
	count_folio(K_ADDED, added_folio(ARGUMENT(PT_REGS_PARM1(ctx)), ARGUMENT(PT_REGS_PARM2(ctx))));
	return 0;
}

SEC("?kprobe/filemap_add_folio")
int added_kprobe(struct pt_regs *ctx)
{
	count_folio(K_ADDED, added_folio(ARGUMENT(PT_REGS_PARM1(ctx)), ARGUMENT(PT_REGS_PARM2(ctx))));
	return 0;
}

SEC("?fentry/filemap_add_folio")
int added_fentry(u64 *ctx)
{
	count_folio(K_ADDED, added_folio(ARGUMENT(ctx[0]), ARGUMENT(ctx[1])));
	return 0;
}

SEC("?tp/filemap/mm_filemap_add_to_page_cache")
int added_tp(struct trace_event_raw_mm_filemap_op_page_cache *ctx)
{
	u32 order = 0;

	/* Before folios there is no such field: pages come one by one. */
	if (bpf_core_field_exists(ctx->order))
		order = ctx->order;
	count(K_ADDED, 1ULL << (order & 31));
	return 0;
}

SEC("?tp_btf/mm_filemap_add_to_page_cache")
int added_btf(u64 *ctx)
{
	count_folio(K_ADDED, (void *)ctx[0]);
	return 0;
}

/* ---- accessed: no tracepoint stands for it ---- */

SEC("?kprobe.multi/folio_mark_accessed")
int accessed_multi(struct pt_regs *ctx)
{
	count_folio(K_ACCESSED, (void *)PT_REGS_PARM1(ctx));
	return 0;
}

SEC("?kprobe/folio_mark_accessed")
int accessed_kprobe(struct pt_regs *ctx)
{
	count_folio(K_ACCESSED, (void *)PT_REGS_PARM1(ctx));
	return 0;
}

SEC("?fentry/folio_mark_accessed")
int accessed_fentry(u64 *ctx)
{
	count_folio(K_ACCESSED, (void *)ctx[0]);
	return 0;
}

/* ---- dirtied ---- */

/* Its caller, where it is inlined, looks whether the folio still is in the cache; a truncated one is not counted. */
static __always_inline void count_dirtied(void *folio)
{
	if (folio_mapping_of(folio))
		count_folio(K_DIRTIED, folio);
}

SEC("?kprobe.multi/folio_account_dirtied")
int dirtied_multi(struct pt_regs *ctx)
{
	count_dirtied((void *)PT_REGS_PARM1(ctx));
	return 0;
}

SEC("?kprobe/folio_account_dirtied")
int dirtied_kprobe(struct pt_regs *ctx)
{
	count_dirtied((void *)PT_REGS_PARM1(ctx));
	return 0;
}

SEC("?fentry/folio_account_dirtied")
int dirtied_fentry(u64 *ctx)
{
	count_dirtied((void *)ctx[0]);
	return 0;
}

SEC("?tp_btf/writeback_dirty_folio")
int dirtied_btf(u64 *ctx)
{
	count_folio(K_DIRTIED, (void *)ctx[0]);
	return 0;
}

/* Says neither which folio nor how large: one page. */
SEC("?tp/writeback/writeback_dirty_folio")
int dirtied_tp(void *ctx)
{
	count(K_DIRTIED, 1);
	return 0;
}

/* ---- buffers dirtied ---- */

SEC("?kprobe.multi/mark_buffer_dirty")
int buffer_multi(struct pt_regs *ctx)
{
	count(K_BUFFER_DIRTIED, 1);
	return 0;
}

SEC("?kprobe/mark_buffer_dirty")
int buffer_kprobe(struct pt_regs *ctx)
{
	count(K_BUFFER_DIRTIED, 1);
	return 0;
}

SEC("?fentry/mark_buffer_dirty")
int buffer_fentry(u64 *ctx)
{
	count(K_BUFFER_DIRTIED, 1);
	return 0;
}

SEC("?tp/block/block_dirty_buffer")
int buffer_tp(void *ctx)
{
	count(K_BUFFER_DIRTIED, 1);
	return 0;
}

SEC("?tp_btf/block_dirty_buffer")
int buffer_btf(u64 *ctx)
{
	count(K_BUFFER_DIRTIED, 1);
	return 0;
}

/* ---- processes ---- */

/* A process that has a row takes its new name. */
static __always_inline void on_exec(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct classic_process *p = bpf_map_lookup_elem(&classic_processes, &tgid);

	if (p) {
		describe(p);
		p->uid = running_user();
	}
}

static __always_inline void on_exit(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct classic_process *p = bpf_map_lookup_elem(&classic_processes, &tgid);

	if (!p)
		return;
	describe(p);
	if (last_thread_gone())
		p->dead = 1;
}

SEC("?tp/sched/sched_process_exec")
int exec_tp(void *ctx)
{
	on_exec();
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int exec_btf(u64 *ctx)
{
	on_exec();
	return 0;
}

#include "hooks/exit.h"

/* Run by the monitor, on itself: in a PID namespace it knows itself by another number. */
SEC("?raw_tp")
int look(void *ctx)
{
	self_tgid = bpf_get_current_pid_tgid() >> 32;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
