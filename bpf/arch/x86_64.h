/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * All that is of x86-64: the size of a page, page structs and page-table entries, registers, and the numbers of system
 * calls. Another architecture is another file like this one.
 */
#ifndef CACHETOP_ARCH_H
#define CACHETOP_ARCH_H

#include "../wire.h"

#define PAGE_SHIFT 12
#define STACK_SIZE 16384 /* of a task in the kernel */
#define TS_COMPAT 0x0002

/* A page-table entry of x86. */
#define ENTRY_PRESENT 0x1
#define ENTRY_HUGE 0x80
#define HUGE_PAGES 512 /* mapped by one entry of the level above */
#define HUGE_ORDER 9 /* log2 of that: the smallest huge page, also of hugetlbfs */

/* The address of vmemmap_base, which says where page structs begin. Set before load. */
const volatile u64 vmemmap_base_at = 0;

/* Registers at the entry to the kernel: the number of the system call, and its arguments. */
#define CALL_NUMBER orig_ax
#define CALL_ARG0 di
#define CALL_ARG1 si
#define CALL_ARG2 dx
#define CALL_ARG3 r10
#define CALL_ARG4 r8

/* Whether the thread is in a system call of another table of numbers (32-bit programs). */
#define of_other_table(task) ((task)->thread_info.status & TS_COMPAT)

enum { NR_read = 0, NR_pread64 = 17, NR_readv = 19, NR_preadv = 295, NR_preadv2 = 327 };
enum { NR_sendfile = 40, NR_splice = 275, NR_copy_file_range = 326 };
enum { NR_execve = 59, NR_execveat = 322, NR_io_uring_enter = 426, NR_io_submit = 209 };
enum { NR_write = 1, NR_pwrite64 = 18, NR_writev = 20 };
enum { NR_truncate = 76, NR_ftruncate = 77 };
enum { NR_fallocate = 285, NR_open = 2, NR_creat = 85, NR_openat = 257, NR_openat2 = 437 };
enum { NR_mmap = 9 };
enum { NR_finit_module = 313 };
enum { NR_rt_sigsuspend = 130 };
enum { NR_readahead = 187, NR_fadvise64 = 221, NR_madvise = 28, NR_process_madvise = 440 };

/*
 * Calls that map pages, or bring those in that are mapped: MAP_POPULATE, mlock, MADV_POPULATE_READ. And one that reads a file, and then
 * waits for what that does.
 */
static __always_inline bool maps_pages(s64 nr)
{
	switch (nr) {
	case NR_mmap:
	case 25: /* mremap */
	case NR_madvise:
	case 149: /* mlock */
	case 151: /* mlockall */
	case 325: /* mlock2 */
	case NR_finit_module:
		return true;
	}
	return false;
}

/*
 * The kinds of system calls, by their number on x86_64: what a thread that sleeps in one waits for. A read that
 * sleeps where signals wake it waits for a pipe or a socket: see why_off.
 */
static __always_inline u32 waits_for(s64 nr)
{
	switch (nr) {
	case 0: /* read */
	case 17: /* pread64 */
	case 19: /* readv */
	case 295: /* preadv */
	case 327: /* preadv2 */
	case 40: /* sendfile */
	case 275: /* splice */
	case 326: /* copy_file_range */
	case 187: /* readahead */
	case 221: /* fadvise64 */
	case 209: /* io_submit */
	case 426: /* io_uring_enter */
		return C_WAIT_READ;
	case 2: /* open */
	case 85: /* creat */
	case 257: /* openat */
	case 437: /* openat2 */
	case 304: /* open_by_handle_at */
		return C_WAIT_OPEN;
	case 78: /* getdents */
	case 217: /* getdents64 */
		return C_WAIT_DIRECTORY;
	case 4: /* stat */
	case 5: /* fstat */
	case 6: /* lstat */
	case 262: /* newfstatat */
	case 332: /* statx */
	case 21: /* access */
	case 269: /* faccessat */
	case 439: /* faccessat2 */
	case 80: /* chdir */
	case 82: /* rename */
	case 83: /* mkdir */
	case 84: /* rmdir */
	case 86: /* link */
	case 87: /* unlink */
	case 88: /* symlink */
	case 89: /* readlink */
	case 90: /* chmod */
	case 91: /* fchmod */
	case 92: /* chown */
	case 93: /* fchown */
	case 94: /* lchown */
	case 132: /* utime */
	case 133: /* mknod */
	case 137: /* statfs */
	case 138: /* fstatfs */
	case 165: /* mount */
	case 188: /* setxattr */
	case 189: /* lsetxattr */
	case 190: /* fsetxattr */
	case 191: /* getxattr */
	case 192: /* lgetxattr */
	case 193: /* fgetxattr */
	case 194: /* listxattr */
	case 195: /* llistxattr */
	case 196: /* flistxattr */
	case 197: /* removexattr */
	case 198: /* lremovexattr */
	case 199: /* fremovexattr */
	case 235: /* utimes */
	case 258: /* mkdirat */
	case 259: /* mknodat */
	case 260: /* fchownat */
	case 263: /* unlinkat */
	case 264: /* renameat */
	case 265: /* linkat */
	case 266: /* symlinkat */
	case 267: /* readlinkat */
	case 268: /* fchmodat */
	case 280: /* utimensat */
	case 303: /* name_to_handle_at */
	case 316: /* renameat2 */
	case 452: /* fchmodat2 */
		return C_WAIT_LOOKUP;
	case 1: /* write */
	case 18: /* pwrite64 */
	case 20: /* writev */
	case 296: /* pwritev */
	case 328: /* pwritev2 */
	case 76: /* truncate */
	case 77: /* ftruncate */
	case 285: /* fallocate */
		return C_WAIT_WRITE;
	case 3: /* close: NFS and FUSE write back then */
	case 26: /* msync */
	case 74: /* fsync */
	case 75: /* fdatasync */
	case 162: /* sync */
	case 277: /* sync_file_range */
	case 306: /* syncfs */
	case 166: /* umount2: writes back all that is dirty */
		return C_WAIT_SYNC;
	case 59: /* execve */
	case 322: /* execveat */
		return C_WAIT_EXEC;
	case 7: /* poll */
	case 23: /* select */
	case 232: /* epoll_wait */
	case 270: /* pselect6 */
	case 271: /* ppoll */
	case 281: /* epoll_pwait */
	case 441: /* epoll_pwait2 */
	case 42: /* connect */
	case 43: /* accept */
	case 288: /* accept4 */
	case 44: /* sendto */
	case 46: /* sendmsg */
	case 307: /* sendmmsg */
	case 45: /* recvfrom */
	case 47: /* recvmsg */
	case 299: /* recvmmsg */
	case 69: /* msgsnd */
	case 70: /* msgrcv */
	case 242: /* mq_timedsend */
	case 243: /* mq_timedreceive */
	case 34: /* pause */
	case 128: /* rt_sigtimedwait */
	case 130: /* rt_sigsuspend, of who has no children (why_off) */
		return C_WAIT_PEER;
	case 35: /* nanosleep */
	case 230: /* clock_nanosleep */
		return C_WAIT_TIMER;
	case 65: /* semop */
	case 220: /* semtimedop */
	case 72: /* fcntl */
	case 73: /* flock */
	case 202: /* futex */
	case 449: /* futex_waitv */
	case 455: /* futex_wait */
		return C_WAIT_LOCK;
	case 56: /* clone, with CLONE_VFORK */
	case 58: /* vfork */
	case 435: /* clone3 */
	case 61: /* wait4 */
	case 247: /* waitid */
		return C_WAIT_CHILD;
	case 208: /* io_getevents */
	case 333: /* io_pgetevents */
		return C_WAIT_COMPLETION;
	}
	return C_WAIT_OTHER;
}

#endif
