/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Pages read back in after reclaim had evicted them: the cache remembers that it had them. */
#ifndef CACHETOP_REFAULT_H
#define CACHETOP_REFAULT_H

#include "pages.h"

/* workingset_refault(folio, shadow): pages of files only. What comes back from swap is no page cache. */
static __always_inline void on_refault(void *folio)
{
	struct account a;

	if (!ready || is_swap_backed(folio) || !account_open(&a))
		return;
	COUNT(&a, C_REFAULTED, 1ULL << (folio_order_of(folio) & 31));
}

#endif
