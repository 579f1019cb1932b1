/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What programs get from the way they are attached: arguments, and which end of a function it is. */
#ifndef CACHETOP_HOOKS_ATTACH_H
#define CACHETOP_HOOKS_ATTACH_H

#include "../core.h"

/* The first argument of a probed function, as what it points to. */
#define ARGUMENT(ctx, n, type) bpf_core_cast((void *)PT_REGS_PARM##n(ctx), type)

extern bool bpf_session_is_return___old(void) __ksym __weak;
extern __u64 *bpf_session_cookie___old(void) __ksym __weak;
/* 7.0 and newer. */
extern bool bpf_session_is_return___ctx(void *ctx) __ksym __weak;
extern __u64 *bpf_session_cookie___ctx(void *ctx) __ksym __weak;

static __always_inline bool is_return(void *ctx)
{
	if (bpf_ksym_exists(bpf_session_is_return___ctx))
		return bpf_session_is_return___ctx(ctx);
	return bpf_session_is_return___old();
}

static __always_inline u64 *cookie(void *ctx)
{
	if (bpf_ksym_exists(bpf_session_cookie___ctx))
		return (u64 *)bpf_session_cookie___ctx(ctx);
	return (u64 *)bpf_session_cookie___old();
}

#endif
