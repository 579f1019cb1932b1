/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * For whom kswapd may have made room (`cachestat --blame SECONDS`): how much memory each cgroup takes, file or not, and who finds
 * so little left that kswapd is woken.
 */
#ifndef CACHETOP_GROWTH_H
#define CACHETOP_GROWTH_H

#include "evictor.h"

#define GFP_HIGH 0x20
#define GFP_DIRECT_RECLAIM 0x400

/* The same in src/kernel/growth.rs. */
struct blame_growth {
	u64 grew; /* pages put on the kernel's lists that are charged to it */
	u64 woke; /* times that kswapd slept and one of its threads woke it */
};

/* By cgroup; 0: charged to none, and woken in nobody's name. User space makes NO_GROUP. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct blame_growth);
} blame_growths SEC(".maps");

/* All for which there is no room. */
#define NO_GROUP (~0ULL)

struct page___head {
	unsigned long flags;
} __attribute__((preserve_access_index));

static __always_inline struct blame_growth *growth_of(u64 group)
{
	struct blame_growth none = {}, *known = bpf_map_lookup_elem(&blame_growths, &group);

	if (known)
		return known;
	bpf_map_update_elem(&blame_growths, &group, &none, BPF_NOEXIST);
	known = bpf_map_lookup_elem(&blame_growths, &group);
	if (known)
		return known;
	group = NO_GROUP;
	return bpf_map_lookup_elem(&blame_growths, &group);
}

/* A folio is put on the list of pages in use, some time after it was allocated (folio_batch), whoever runs then. */
static __always_inline void grew(void *folio)
{
	struct blame_growth *growth;
	u32 order, head;

	if (!ready)
		return;
	if (bpf_core_type_exists(struct folio)) {
		order = order_of_argument(folio);
	} else {
		head = bpf_core_enum_value(enum pageflags___head, PG_head___head);
		/* Anonymous memory: before folios, nothing else on the lists is large. */
		order = BPF_CORE_READ((struct page___head *)folio, flags) >> head & 1 ? HUGE_ORDER : 0;
	}
	growth = growth_of(group_id_charged(charged_to(folio, ARGUMENT_OF_BTF)));
	if (growth)
		__sync_fetch_and_add(&growth->grew, 1ULL << (order & 31));
}

/*
 * kswapd sleeps and is woken, by whoever allocates. What may neither sleep nor fail may be an interrupt's, which runs in the
 * name of a bystander.
 */
static __always_inline void woke(u64 gfp)
{
	bool atomic = gfp & GFP_HIGH && !(gfp & GFP_DIRECT_RECLAIM);
	struct blame_growth *growth;
	u64 group = 0;

	if (!ready)
		return;
	/* Built without the memory controller, a kernel has no group to be found. */
	if (!atomic && bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		group = id_of_group(memory_group_of((void *)bpf_get_current_task()));
	growth = growth_of(group);
	if (growth)
		__sync_fetch_and_add(&growth->woke, 1);
}

#endif
