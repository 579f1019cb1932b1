// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Thin wrappers: one inline body per event, a program for each way to attach it. Nothing is loaded unless the
 * plan (src/plan.rs) chooses it: every section name starts with '?'.
 *
 * Names end in the way they attach: _fentry/_fexit (BPF trampoline), _multi (kprobe.multi), _btf (BTF tracepoint),
 * _tp (classic tracepoint). _pages marks the twins for kernels without atomic
 * instructions that fetch (before 5.12).
 */
#include "hooks/blame.h"
#include "hooks/calls.h"
#include "hooks/chores.h"
#include "hooks/direct.h"
#include "hooks/faults.h"
#include "hooks/flight.h"
#include "hooks/follow.h"
#include "hooks/pages.h"
#include "hooks/reads.h"
#include "hooks/threads.h"
#include "hooks/trees.h"
#include "hooks/tried.h"
#include "hooks/wanted.h"
#include "hooks/writes.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
