#!/usr/bin/env bash
# Sets up a fresh Debian 12 or 13 (or a relative with apt) for cachetop.
#
#   ./setup.sh run      install what building needs, build, watch the page cache for five seconds
#   ./setup.sh install  install what building needs, build, and put commands, manual pages and completions in place
#   ./setup.sh static   build the commands for a machine with nothing on it (musl; libelf and zlib inside)
#   ./setup.sh package  build a Debian package: target/package/cachetop_*.deb
#   ./setup.sh test     install what testing needs, run every check on this kernel and on those of tests/vm
#
# Run it as root: packages, BPF and mounts need that. What is installed already is used as it is.
# CLANG=clang-19 chooses the compiler of the BPF programs; VM_KERNELS=6.12,7.2 and VM_JOBS=1 narrow the matrix.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

MIN_RUST=86    # 1.86: ratatui 0.30
MIN_QEMU=10    # as tests/vm/vm, which says why
BUILD_PACKAGES=(ca-certificates clang gcc libc6-dev libelf-dev make pkg-config zlib1g-dev)
TEST_PACKAGES=(btrfs-progs busybox-static ccache e2fsprogs fdisk fish kmod mount python3 util-linux xfsprogs zsh zstd)
STATIC_PACKAGES=(autoconf automake autopoint bison flex gawk gettext libtool linux-libc-dev musl-tools)
PACKAGE_PACKAGES=(dpkg-dev python3)
CARGO_DEB=3.8.0
DUCKDB=2.0.1
COLLECTOR=v0.165.0  # as tests/otlp/collector.yaml has it
MIN_GO=25           # 1.25: that collector
CLANGS=(clang-14 clang-19)         # the oldest and the newest that Debian's stable releases carry
BROWSER=chromium-headless-shell    # shows the charts of --html
CLANG_FORMAT="clang-format-19"     # one version: each formats a little differently
export DEBIAN_FRONTEND=noninteractive

die() {
    echo "setup.sh: $*" >&2
    exit 1
}

# ---- packages ----------------------------------------------------------------------------------------------

# What is built beside may install something, too.
apt_install() { apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "$@"; }

apt_lists_fresh=
apt_update() {
    # Two at once refuse each other.
    mkdir -p target
    [ -n "$apt_lists_fresh" ] || flock target/apt.lock apt-get -qq update
    apt_lists_fresh=yes
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ]; }

# The version of package $1 that apt would install; nothing where it has none.
candidate() { LC_ALL=C apt-cache policy "$1" | sed -n 's/^ *Candidate: \([0-9]*:\)\{0,1\}\([0-9][^ ]*\)$/\2/p'; }

# Installs those of the packages that are missing.
install() {
    local missing=() p
    for p in "$@"; do installed "$p" || missing+=("$p"); done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || die "no apt-get here; install by hand the equivalents of: ${missing[*]}"
    [ "$(id -u)" = 0 ] || die "not root, and packages are missing; run: apt-get install ${missing[*]}"
    echo "installing ${missing[*]}"
    apt_update
    apt_install "${missing[@]}"
}

rust_is_new_enough() {
    local tool minor
    for tool in cargo rustc; do
        minor=$($tool --version 2>/dev/null | sed -n 's/^[a-z]* 1\.\([0-9]*\)\..*/\1/p') || return 1
        [ "${minor:-0}" -ge $MIN_RUST ] || return 1
    done
}

install_rust() {
    [ ! -d "$HOME/.cargo/bin" ] || PATH="$HOME/.cargo/bin:$PATH"
    if ! rust_is_new_enough; then
        command -v apt-get >/dev/null || die "Rust 1.$MIN_RUST or newer is needed"
        [ "$(id -u)" != 0 ] || apt_update
        # Debian's own is too old (1.63 in 12, 1.85 in 13), but both carry the one that their browsers are built with.
        local minor suffix=
        minor=$(candidate rustc | cut -d. -f2)
        [ "${minor:-0}" -ge $MIN_RUST ] || suffix=-web
        [ -n "$(candidate "rustc$suffix")" ] || die "apt has no Rust 1.$MIN_RUST or newer: install one, then try again"
        install "rustc$suffix" "cargo$suffix"
        hash -r
        rust_is_new_enough || die "$(command -v cargo) comes first in PATH and is older than 1.$MIN_RUST: update it"
    fi
    echo "using $(rustc --version), $(command -v cargo)"
}

# What `cargo fmt` and `cargo clippy` need, where apt knows it and the toolchain came from there.
install_rust_tools() {
    local p
    for p in rustfmt rustfmt-web rust-clippy; do
        case $p in *-web) installed rustc-web || continue ;; *) installed rustc || continue ;; esac
        [ -z "$(candidate $p)" ] || install $p
    done
}

install_qemu() {
    local have
    have=$(qemu-system-x86_64 --version 2>/dev/null | sed -n 's/.*version \([0-9]*\).*/\1/p') || true
    [ "${have:-0}" -lt $MIN_QEMU ] || return 0
    apt_update
    local new backports
    new=$(candidate qemu-system-x86)
    [ -n "$new" ] || die "apt has no qemu-system-x86"
    if [ "${new%%[.:]*}" -ge $MIN_QEMU ]; then
        install qemu-system-x86
        return
    fi
    # shellcheck source=/dev/null
    backports=$(. /etc/os-release && echo "${VERSION_CODENAME:-none}-backports")
    if ! apt-cache policy | grep -q "n=$backports,"; then
        echo "enabling $backports in /etc/apt/sources.list.d/$backports.sources, for QEMU $MIN_QEMU"
        tests/vm/vm sources "$backports" >"/etc/apt/sources.list.d/$backports.sources"
        apt-get -qq update
    fi
    apt_install -t "$backports" qemu-system-x86
}

install_for_building() {
    install "${BUILD_PACKAGES[@]}"
    install_rust
}

install_for_testing() {
    install_for_building
    install "${TEST_PACKAGES[@]}"
    install_rust_tools
    local p
    for p in "${CLANGS[@]}" "$CLANG_FORMAT" "$BROWSER"; do
        installed "$p" || apt_update
        if [ -n "$(candidate "$p")" ]; then install "$p"; else echo "apt has no $p"; fi
    done
    install_qemu
}

# ---- checks ------------------------------------------------------------------------------------------------

passed=0 failed=0 skipped=0 summary= details=

note() {
    summary+=$(printf '%-8s %5s s  %s' "$1" "$2" "$3")$'\n'
    printf -- '-- %s: %s after %s s, at %s s\n' "$3" "$1" "$2" "$SECONDS" | tee -a target/steps
}

# running NAME: says which check begins, for whoever reads along and for whoever finds it still running.
running() {
    printf '\n== %s\n' "$1"
    echo "$1" >target/running
}

# What went as it should line by line: for the logs alone, so that what is printed stays short enough to be kept whole.
ROUTINE='^(\[[^]]*\] )?(test .* \.\.\. ok$|ok |ok: |plan: |hook: |engine |figures compared|   verdict: |   difference |   -- )'
without_routine() { grep --line-buffered -vE "$ROUTINE" || :; }

# step NAME COMMAND...: runs one check, tells how it ended and how long it took. Never ends the script.
step() {
    local name=$1 start=$SECONDS
    shift
    running "$name: $*"
    # In a subshell with -e of its own: as the condition of an "if", the command would lose it.
    set +e
    mkdir -p target
    (set -e; "$@") 2>&1 | tee target/step.out | without_routine
    local status=${PIPESTATUS[0]}
    set -e
    if [ $status = 0 ]; then
        passed=$((passed + 1))
        note ok $((SECONDS - start)) "$name"
    else
        failed=$((failed + 1))
        note FAILED $((SECONDS - start)) "$name"
        details+="[$name]"$'\n'
        details+=$({ grep -A4 -E "^error|^FAIL |^failed:|panicked at" target/step.out || tail -n 8 target/step.out; } |
            head -n 24 | cut -c1-500 || :)$'\n'
    fi
}

skip() {
    skipped=$((skipped + 1))
    echo
    note skipped 0 "$1 ($2)"
}

check_bpf_format() { find bpf -name '*.[ch]' -print0 | xargs -0 "$CLANG_FORMAT" --dry-run -Werror; }

# With the newest compiler of the BPF programs, if it is there; all of the rest is built with the default one, and in another
# directory: the one would have the other made anew.
clippy() {
    export CARGO_TARGET_DIR=target/clippy
    ! command -v "${CLANGS[-1]}" >/dev/null || export CLANG=${CLANGS[-1]}
    cargo clippy --locked --all-targets -- -D warnings
    # "test = false" keeps these out of --all-targets.
    cargo clippy --locked --test truth --test root --test load --test du --test terminal --test stories --test browser -- -D warnings
}

# The stack of the kernel programs, also as clippy's compiler has just made them, which may not be that of the tests.
check_stack() {
    BPF_OBJECTS=$(ls -t target/clippy/debug/build/cachetop-*/out/cachetop.bpf.o | head -n 1) CARGO_PROFILE_DEV_OPT_LEVEL=0 \
        cargo test --locked --lib -- --nocapture what_stands_on_each_other
}

# The kernel programs, and that the rest fits what is made from them; all of it is built with the default one.
build_with() { CLANG=$1 cargo check --locked --lib; }

# The commands, and the tests that run them, here and in guests, at once: what tests stand on has features that the commands
# alone do not ask for, and everything would be built twice.
programs() {
    cargo test --locked --no-run --test load --test du --test terminal --test browser --test stories --test truth
}

# Builds the tests named $1 and prints the path of their program.
test_program() {
    cargo test --locked --no-run --test "$1" --message-format=json |
        python3 -c 'import json, sys
for m in map(json.loads, sys.stdin):
    if m.get("executable") and m["target"]["name"] == sys.argv[1]: print(m["executable"])' "$1"
}

# run_truth NAME PROGRAM KERNELS [ARGUMENT...]: the truth tests on kernels in virtual machines.
run_truth() {
    # 6.1 has the hooks of 5.10 and 7.3 those of 7.2: they share the file systems. $FS narrows them for all kernels.
    local name=$1 program=$2 kernels=$3 dirs="some='${FS-}'"';case $(uname -r) in
        6.1.*) fs="xfs" ;;
        7.3*) fs="btrfs tmpfs" ;;
        *) fs="ext4" ;;
    esac
    for f in ${some:-$fs}; do dirs="$dirs --dir $f=/mnt/$f"; done;'
    shift 3
    # A place of 1 GiB, for the test of who takes what lies in one, before the kernel has put something there; the rest of the
    # memory is what all tests have. On some kernels the one that boots is told to keep out of it; the others lie anywhere, as on most machines.
    dirs="echo 1 >/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages; $dirs"
    local command="$dirs truth --json /results/truth.json \$dirs $*"
    # Who evicted whose is told on every kernel, always of ext4. What the files of each workload sum up to must be what its
    # processes did; and the clock: how long calls took, for the system and for each row. In guests that are there already.
    [ -n "$*" ] || command+="; all=\$?
        also() { echo \"truth, also: \$*\"; truth --dir ext4=/mnt/ext4 \"\$@\" || all=1; }
        case \"\$dirs\" in *ext4=*) ;; *) also --only blame ;; esac
        case \$(uname -r) in 5.10.*|7.2.*)
            also --files --only pivot- --only write --only direct --only device --only fault ;; esac
        case \$(uname -r) in 6.12.*|7.2.*) also --latency --only latency ;; esac
        [ \$all = 0 ]"
    # For file systems in files, inside the guest.
    "${MATRIX:-run_matrix}" "$name" "$kernels" --mem 2176 --append "6.1:nokaslr 6.12:nokaslr 7.3:nokaslr init_on_alloc=0" \
        --add "$program:/bin/truth" --add "$(command -v mke2fs):/bin/mkfs.ext4" \
        --add "$(command -v mkfs.btrfs):/bin/mkfs.btrfs" --add "$(command -v mkfs.xfs):/bin/mkfs.xfs" \
        -- "$command"
}

# What Prometheus makes of the times of calls, in a guest: its kernel tells them, unlike one where only tracepoints attach.
latency_scraped() {
    local python=target/guest-python at=target/without-debug command added=()
    tests/vm/python $python
    mkdir -p $at
    for command in cachetopd cachestat; do
        strip --strip-debug -o $at/$command target/debug/$command
        added+=(--add $at/$command:/bin/$command)
    done
    for command in prometheus promtool; do added+=(--add target/prometheus/usr/bin/$command:/bin/$command); done
    for command in contrib tests/prometheus tests/web docs/guide; do added+=(--add $command:/source/$command); done
    tests/vm/vm run 6.12 --fs ext4 --mem 2048 --timeout 900 --logs target/vm-logs/scraped "${added[@]}" \
        --add $python:/usr --add /usr/bin/python3:/bin/python3 \
        --add "$(command -v mke2fs):/bin/mkfs.ext4" --add /etc/mke2fs.conf:/etc/mke2fs.conf \
        -- 'export PYTHONHOME=/usr && cd /source && python3 tests/prometheus/run /bin/cachetopd /bin/cachestat /bin/prometheus /bin/promtool' &&
        grep -q "latency by native histograms" target/vm-logs/scraped/6.12.log
}

# What a kernel that lets nobody attach to functions gives, on one where the truth is known to the page. Where this one is
# such a kernel, what it shows itself is not shown again.
tracepoints_only() {
    local only=
    [ "$(own_engine)" != tracepoints ] || only="--only blame --only direct --only uring --only write"
    MATRIX=guests FS=ext4 run_truth tracepoints-only "$truth" 6.12 --without-functions "$only"
}

# What the programs of cachestat attach to on this kernel.
own_engine() {
    if target/debug/cachestat --explain | grep "read calls are put together from tracepoints" >/dev/null; then
        echo tracepoints
    else
        echo functions
    fi
}

# The oldest Rust that Cargo.toml takes: what is newer in the language is seen by no other compiler.
have_oldest_rust() { rustup toolchain install --profile minimal --no-self-update 1.$MIN_RUST >/dev/null 2>&1; }

oldest_rust() {
    cargo +1.$MIN_RUST check --locked --bins --target-dir target/oldest
}

# in_turn NAME...: checks one after another, their output and status for told(), with what the rest leaves of the processors.
in_turn() {
    local name
    renice -n 10 -p $BASHPID >/dev/null
    # -e of their own, as in step().
    set +e
    for name in "$@"; do
        (set -e; "$name") >"target/$name.out" 2>&1
        echo $? >"target/$name.new" && mv "target/$name.new" "target/$name.status"
    done
}

# beside COMMAND...: checks that take minutes and a processor run beside what mostly waits: guests, and what is built.
beside() {
    local name guests=() builds=()
    if [ -n "$truth" ] && grep -q '6\.12' <<<"$kernels"; then guests+=(tracepoints_only); else
        skip "tracepoints only" "the truth tests do not build, or no 6.12 among the kernels"; fi
    [ -z "$truth" ] || builds+=(directory_by_9p)
    if [ -x target/prometheus/usr/bin/promtool ] && grep -q '6\.12' <<<"$kernels"; then guests+=(latency_scraped); else
        skip "latency scraped" "no Prometheus, or no 6.12 among the kernels"; fi
    if (install_for_packaging); then builds+=(debian_package); else skip "Debian package" "cargo-deb cannot be had"; fi
    (in_turn "${guests[@]}") &
    local first=$!
    (in_turn "${builds[@]}") &
    local second=$!
    "$@"
    wait "$first" "$second"
    for name in "${guests[@]}" "${builds[@]}"; do step "${name//_/ }" told "$name"; done
}

# told NAME: what a check of in_turn() said, and how it ended, once it has.
told() {
    while [ ! -e "target/$1.status" ]; do
        if ! kill -0 "$others" 2>/dev/null && [ ! -e "target/$1.status" ]; then
            echo "$1 has not ended, and nothing is going to end it"
            return 1
        fi
        sleep 0.5
    done
    cat "target/$1.out"
    return "$(cat "target/$1.status")"
}

# What does not depend on what runs meanwhile, and disturbs nobody: to be built, into directories of its own.
static_programs() {
    install_for_static
    CARGO_PROFILE_DEV_OPT_LEVEL=0 cargo_static build --bins
}

# What mostly waits for time to pass, and beside it what takes a processor: the process of the latter is left in $others, and the
# names of its checks in $builds, of which nobody has told yet. In $root, the program of the former.
tests_as_root() {
    # Their tools come from elsewhere than apt.
    if (install_for_static); then builds+=(static_programs); else skip "static build" "no Rust for musl"; fi
    if cargo clippy --version >/dev/null 2>&1; then builds+=(clippy); else
        skip "clippy" "this toolchain has no clippy"; fi
    if go_is_new_enough go 22 && (cd tests/kubernetes && go mod download); then builds+=(kubernetes_manifest); else
        skip "Kubernetes manifest" "no Go 1.22, or its modules cannot be had"; fi
    if have_oldest_rust; then builds+=(oldest_rust); else
        skip "oldest rust" "Rust 1.$MIN_RUST cannot be had: no rustup, or nothing that it reaches"; fi
    rm -f target/*.status
    # Run once, they are sooner compiled and run than optimised; what runs in guests is not.
    step "tests as root, to be run" env CARGO_PROFILE_DEV_OPT_LEVEL=0 cargo test --locked --no-run --test root
    root=$(CARGO_PROFILE_DEV_OPT_LEVEL=0 test_program root) || root=
    # The static build, which is the first, shares a directory with what is built later here, and has it to itself.
    (in_turn "${builds[0]-true}" fetch_collector "${builds[@]:1}" install_for_packaging) &
    others=$!
    step "tests as root on this kernel, $(uname -r)" "${root:-false}"
}

# A directory of this machine, which QEMU serves to a guest, read there.
directory_by_9p() {
    mkdir -p target/9p
    guests 9p 6.12-full --fs ext4 --add "$truth:/bin/truth" \
        --qemu '-virtfs local,path=target/9p,mount_tag=truth,security_model=none' \
        -- 'truth --dir ext4=/mnt/ext4 --only 9p >/tmp/o; s=$?; cat /tmp/o; [ $s = 0 ] && grep -q "^2 passed, 0 failed, 0 n/a" /tmp/o'
}

# run_load PROGRAM ROOT KERNELS: the load tests in virtual machines, with less load: emulation is slow. Without those that
# ask no more of another kernel than of this one; what two kernels show alike is shown by one of them. Of the tests as root,
# that of what only kernels with functions know, and that of generations.
run_load() {
    local command='case $(uname -r) in
        5.10.*) some="short_processes renamed given_up one_process another_user sleep pressure room shorter" ;;
        # Whose it is, where some events are passed by: LOST has as many as are missing.
        7.*) some="short_processes of_many_threads many_names four_thousand renamed_and shorter a_file_beside room given_up threads_that_sleep reads_beside read_ahead_beside mapped_as many_buffers" ;;
        *) some="short_lived comes_again processor dirty a_name_beside" ;;
    esac
    CACHESTAT=/bin/cachestat load --dir /mnt/ext4 --processes 100 --files 1000 --hotplug $some'
    # Where it looks for its files is known when it is built.
    # On one of the others generations are simulated, and what is written, against what comes true.
    command+=" && export CACHESTAT=/bin/cachestat && mkdir -p $PWD/target/tmp /mnt/ext4/tmp &&
        mount --bind /mnt/ext4/tmp $PWD/target/tmp && case \$(uname -r) in 6.12.*) root waiting_of_what_if ;;
        7.*) echo y >/sys/kernel/mm/lru_gen/enabled && WHAT_IF_SECONDS=16 root what_if_of_writes ;; esac"
    local at=target/without-debug
    mkdir -p $at
    strip --strip-debug -o $at/root "$2"
    run_matrix load "$3" --add "$1:/bin/load" --add target/debug/cachestat:/bin/cachestat --add $at/root:/bin/root \
        --add "$(command -v taskset):/bin/taskset" -- "$command"
}

# run_views DU TERMINAL KERNELS: the tests of cachedu, and of cachetop in a terminal, in virtual machines.
run_views() {
    local command='case $(uname -r) in 5.10.*) some="ext4 xfs tmpfs" ;; *) some="btrfs tmpfs" ;; esac
    for f in $some; do dirs="$dirs --dir $f=/mnt/$f"; done; CACHEDU=/bin/cachedu du_test $dirs'
    # How it ends is the same on every kernel.
    command+=' && mkdir -p /dev/pts && mount -t devpts devpts /dev/pts &&
        CACHETOP=/bin/cachetop terminal /mnt/ext4 --no-endings'
    # Not "du", which busybox has. Without debugging information: all of it has to fit into the guest's memory.
    local at=target/without-debug
    mkdir -p $at
    strip --strip-debug -o $at/du_test "$1"
    strip --strip-debug -o $at/terminal "$2"
    strip --strip-debug -o $at/cachedu target/debug/cachedu
    strip --strip-debug -o $at/cachetop target/debug/cachetop
    strip --strip-debug -o $at/cachestat target/debug/cachestat
    run_matrix views "$3" --add $at/du_test:/bin/du_test --add $at/cachedu:/bin/cachedu \
        --add $at/terminal:/bin/terminal --add $at/cachetop:/bin/cachetop \
        --add $at/cachestat:/bin/cachestat -- "$command"
}

# run_stories PROGRAM KERNELS: the stories of the report in virtual machines, with a disk that is slow.
run_stories() {
    local VM_TIMEOUT=${VM_TIMEOUT:-1800}
    run_matrix stories "$2" --fs ext4,xfs --add "$1:/bin/stories" --add target/debug/cachestat:/bin/cachestat \
        --qemu '-set drive.ext4.throttling.iops-read=25 -set drive.ext4.throttling.bps-read=524288' \
        -- 'case $(uname -r) in
            # What needs an old kernel, and what any kernel shows: the programs of an old one are loaded sooner.
            5.10.*) some="dd_direct of_nfs warmed daemon throttled metadata parallel server processor lost du_cold that_sleeps swapped_out" ;;
            *) some="dd_twice every of_ext4 filled too_large wasted sparse mapped overlay_copies in_memory metadata_twice dropped_behind bounded" ;;
        esac
        CACHESTAT=/bin/cachestat stories $some'
}

# run_matrix NAME KERNELS ARGUMENT...: a command on kernels in virtual machines. Each kernel is a check of its own.
run_matrix() {
    local name=$1 kernels=$2
    shift 2
    local count start=$SECONDS bad=0
    count=$(tr ',' '\n' <<<"$kernels" | wc -l)
    running "$name: kernels $kernels"
    guests "$name" "$kernels" "$@" || bad=$?
    [ "$bad" -le "$count" ] || bad=$count
    passed=$((passed + count - bad)) failed=$((failed + bad))
    note "$([ "$bad" = 0 ] && echo ok || echo FAILED)" $((SECONDS - start)) "$name: $((count - bad)) of $count kernels"
    [ "$bad" = 0 ] || details+=$(what_failed "$name" || :)$'\n'
}

# guests NAME KERNELS ARGUMENT...: the same, alone. The exit status is how many failed.
guests() {
    local name=$1 kernels
    # The newest first: there everything takes longest, and what begins last should be short.
    kernels=$(tr ',' '\n' <<<"$2" | sort -rV | paste -sd,)
    shift 2
    tests/vm/vm matrix --kernels "$kernels" --jobs "${VM_JOBS:-2}" --timeout "${VM_TIMEOUT:-1500}" \
        --results "target/vm-results/$name" --logs "target/vm-logs/$name" "$@" | tee "target/vm-logs/$name.out" | without_routine
}

# Of the kernels that failed, why and the lines of their logs that say what: where only the end of this output is kept,
# it must be there.
what_failed() {
    local kernel rest
    grep -E '^ +[0-9.]+ +FAILED' "target/vm-logs/$1.out" | while read -r kernel rest; do
        echo "[$1 $kernel] $rest"
        { grep -A3 -E '^ *[0-9.]* *(FAIL |passed when|error|thread .* panicked)' "target/vm-logs/$1/$kernel.log" ||
            tail -n 5 "target/vm-logs/$1/$kernel.log"; } | grep -vE '^ *[0-9.]+ ok  ' | head -n 14 | cut -c1-500
    done
}

run() {
    install_for_building
    cargo build --locked --release --bins
    [ "$(id -u)" = 0 ] || die "built; watching the page cache needs root: sudo target/release/cachestat 1 5"
    target/release/cachestat 1 5
}

# Commands, manual pages and completions below $PREFIX (/usr/local); DESTDIR goes before it, for packages.
install_all() {
    install_for_building
    cargo build --locked --release --bins
    put_in_place target/release "${DESTDIR-}${PREFIX:-/usr/local}"
}

# What stands in $1, below $2. The commands print their manual pages and completions themselves.
put_in_place() {
    local command share=$2/share
    mkdir -p "$2/bin" "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" \
        "$share/fish/vendor_completions.d"
    for command in cachestat cachetop cachetopd cachedu; do
        cp "$1/$command" "$2/bin/$command"
        "$1/$command" --generate man >"$share/man/man1/$command.1"
        "$1/$command" --generate bash >"$share/bash-completion/completions/$command"
        "$1/$command" --generate zsh >"$share/zsh/site-functions/_$command"
        "$1/$command" --generate fish >"$share/fish/vendor_completions.d/$command.fish"
    done
    echo "installed below $2"
}

# The same directory always stands for the sources, and the last commit's time for the time: two builds are equal.
equal_builds() {
    export RUSTFLAGS="--remap-path-prefix=$PWD=/cachetop --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
    export SOURCE_DATE_EPOCH
}

# What the static build needs, and where musl's compiler finds the kernel's headers. elfutils looks for three libraries that
# only its own programs use: it is told that they are there.
install_for_static() {
    install_for_building
    install "${STATIC_PACKAGES[@]}"
    rustup target add x86_64-unknown-linux-musl
}

# cargo_static ARGUMENT...: cargo, for the musl target.
cargo_static() {
    CC_x86_64_unknown_linux_musl=musl-gcc \
        CFLAGS_x86_64_unknown_linux_musl="-I$PWD/contrib/static/include -idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu" \
        ac_cv_search_argp_parse="none required" ac_cv_search_fts_close="none required" \
        ac_cv_search__obstack_free="none required" \
        cargo "$@" --locked --target x86_64-unknown-linux-musl --features vendored
}

build_static() {
    install_for_static
    PATH="$HOME/.cargo/bin:$PATH"
    equal_builds
    cargo_static build --release --bins
    ls -l target/x86_64-unknown-linux-musl/release/cache{stat,top,topd,du}
}

install_for_packaging() {
    install_for_building
    install "${PACKAGE_PACKAGES[@]}"
    PATH="$HOME/.cargo/bin:$PATH"
    [ "$(cargo deb --version 2>/dev/null)" = "cargo-deb $CARGO_DEB" ] || cargo install --quiet --locked cargo-deb --version "$CARGO_DEB"
}

# package PROGRAMS [OPTION]...: a Debian package of the programs in a directory, into target/package.
package() {
    local at=target/package programs=$1
    shift
    rm -rf $at/bin $at/share $at/systemd
    put_in_place "$programs" $at
    strip $at/bin/*
    mkdir -p $at/systemd
    sed 's,/usr/local/bin/,/usr/bin/,' contrib/systemd/cachetopd.service >$at/systemd/cachetopd.service
    cp contrib/debian/preinst contrib/debian/postrm $at/systemd/
    contrib/sbom/cyclonedx >$at/cachetop.cdx.json
    cargo deb --quiet --no-build --no-strip --output $at "$@"
}

build_package() {
    install_for_packaging
    equal_builds
    cargo build --locked --release --bins
    package target/release
    ls -l target/package/*.deb
}

# The commands of the static build on a root that has nothing but them.
check_static() {
    static_programs
    local root=target/static-root at=target/x86_64-unknown-linux-musl/debug command
    rm -rf $root
    mkdir -p $root/proc $root/sys $root/tmp
    for command in cachestat cachetop cachetopd cachedu; do
        strip -o $root/$command $at/$command
        if readelf -lW $root/$command | grep INTERP; then return 1; fi
    done
    unshare --mount bash -euxc '
        mount -t proc proc "$0/proc"
        mount --rbind /sys "$0/sys"
        chroot "$0" /cachestat 0.2 2
        chroot "$0" /cachestat --json -o /tmp/report -- /cachedu /cachetop 2>/dev/null
        grep -q "\"wall_s\"" "$0/tmp/report"
        chroot "$0" /cachetop -b -n 2 0.2
        chroot "$0" /cachetopd --version' $root
}

# The image of the Containerfile, of the programs of the static build, without a network: what is in it runs.
check_container() {
    install buildah
    local at=target/container root
    local tool=(buildah --root "$PWD/$at/root" --runroot "$PWD/$at/run" --storage-driver vfs)
    rm -rf $at
    mkdir -p $at/programs
    cp target/static-root/cache{stat,top,topd,du} $at/programs
    "${tool[@]}" bud --isolation chroot --build-arg PROGRAMS=$at/programs -f contrib/container/Containerfile -t cachetop .
    "${tool[@]}" inspect --type image cachetop | python3 -c 'import json, sys
c = json.load(sys.stdin)["OCIv1"]["config"]
assert c["Entrypoint"] == ["/usr/bin/cachetopd"] and "9950/tcp" in c["ExposedPorts"], c'
    root=$("${tool[@]}" mount "$("${tool[@]}" from cachetop)")
    mkdir -p "$root/proc" "$root/sys"
    unshare --mount bash -euxc '
        mount -t proc proc "$0/proc"
        mount --rbind /sys "$0/sys"
        chroot "$0" /usr/bin/cachetopd --version
        chroot "$0" /usr/bin/cachestat 0.2 1' "$root"
    rm -rf --one-file-system $at
}

# The unit is one that systemd knows, and its exposure stays what it is: below 5 is OK.
check_unit() {
    install systemd
    local unit=target/unit/cachetopd.service
    mkdir -p target/unit
    sed "s,/usr/local/bin/,$PWD/target/debug/," contrib/systemd/cachetopd.service >$unit
    cp contrib/systemd/cachetopd.socket target/unit/
    # It ends well whatever a unit says that it does not know, and says so.
    [ -z "$(systemd-analyze verify --man=no $unit target/unit/cachetopd.socket 2>&1 | grep cachetopd | tee /dev/stderr)" ]
    systemd-analyze security --offline=true --threshold=26 $unit | tail -n 1
}

# The unit under systemd, which is the first process of a namespace. (77: systemd is the first of this machine.)
check_service() { tests/unit/run target/debug/cachetopd || [ $? = 77 ]; }

# The manifest, read by the types of the Kubernetes API.
kubernetes_manifest() { (cd tests/kubernetes && go run . ../../contrib/kubernetes/cachetopd.yaml); }

# The kernel programs, made in two directories, are the same bytes. (Of the rest, equal_builds tells the compiler.)
check_equal() {
    local one=target/equal/one other=target/equal/another-one at
    export CCACHE_DISABLE=1
    rm -rf target/equal
    for at in $one $other; do
        mkdir -p $at
        cp -a build.rs Cargo.toml Cargo.lock LICENSE* bpf vmlinux src bench tests $at/
    done
    # What it stands on is the same wherever it lies, and has been built: only our own is made anew, in each of them, and
    # of that what build.rs makes.
    for at in $one $other; do
        mkdir -p $at/target/debug
        cp -al target/debug/{.fingerprint,build,deps} $at/target/debug/
        find $at/target/debug -depth -name '*cachetop*' -exec rm -rf {} +
        echo '//! Nothing.' >$at/src/lib.rs
        (cd $at && cargo check --locked --lib --target-dir target)
    done
    for at in wire.rs cachetop.skel.rs classic.skel.rs; do
        cmp $one/target/debug/build/cachetop-*/out/$at $other/target/debug/build/cachetop-*/out/$at
    done
    rm -rf target/equal
}

# The Debian package in fresh roots of the stable releases: installed, run, upgraded, removed.
debian_package() {
    install binutils debian-archive-keyring mmdebstrap
    rm -f target/package/*.deb
    package target/debug
    sha256sum target/package/*-1_*.deb >target/package/sum
    contrib/sbom/check target/package/cachetop.cdx.json target/package/bin/*
    # Nothing in it depends on when it was made.
    package target/debug
    sha256sum -c target/package/sum
    package target/debug --deb-revision 2
    tests/package/run target/package/*-1_*.deb target/package/*-2_*.deb bookworm trixie
}

# Debian's Prometheus, unpacked beside the build: to install it would start a service.
fetch_prometheus() {
    local at=target/prometheus
    [ ! -x $at/usr/bin/promtool ] || return 0
    mkdir -p $at
    (cd $at && apt-get download prometheus && dpkg -x prometheus_*.deb .)
}

# cachetopd scraped by it: its queries are what was read, by construction and by cachestat.
check_prometheus() {
    tests/prometheus/run target/debug/cachetopd target/debug/cachestat target/prometheus/usr/bin/{prometheus,promtool}
}

# DuckDB, for Python, beside the build.
fetch_duckdb() {
    local at=target/duckdb
    ! $at/bin/python -c 'import duckdb' 2>/dev/null || return 0
    install python3-venv
    rm -rf $at
    python3 -m venv $at && $at/bin/pip install --quiet "duckdb==$DUCKDB"
}

# What cachestat exports, read by it: its sums are what was read, by construction and by cachestat.
check_duckdb() { target/duckdb/bin/python tests/duckdb/run target/debug/cachestat; }

# A collector, built beside the build by OpenTelemetry's own builder, where there is a Go that is new enough for it.
fetch_collector() {
    local at=target/otelcol go=go release kept
    [ ! -x $at/otelcol ] || return 0
    # As the kernels of tests/vm are: it is the same for the same version and parts.
    kept=${XDG_CACHE_HOME:-$HOME/.cache}/cachetop/otelcol-$COLLECTOR-$(sha256sum tests/otlp/collector.yaml | cut -c1-12)
    mkdir -p $at
    if [ -x "$kept" ]; then
        cp "$kept" $at/otelcol
        return
    fi
    if ! go_is_new_enough go $MIN_GO; then
        # Debian's own may be too old: there may be a newer one beside it.
        release=$(apt-cache search --names-only '^golang-1\.[0-9]+-go$' | sed 's/^golang-\(1\.[0-9]*\)-go.*/\1/' | sort -V | tail -n 1)
        go=/usr/lib/go-$release/bin/go
        [ -x "$go" ] || apt_install "golang-$release-go" || return 1
        go_is_new_enough "$go" $MIN_GO || return 1
    fi
    CGO_ENABLED=0 PATH="$(dirname "$(command -v "$go")"):$PATH" timeout "${COLLECTOR_TIMEOUT:-300}" \
        "$go" run "go.opentelemetry.io/collector/cmd/builder@$COLLECTOR" --config tests/otlp/collector.yaml || return 1
    mkdir -p "$(dirname "$kept")" && cp $at/otelcol "$kept.$$" && mv "$kept.$$" "$kept"
}

# go_is_new_enough GO MINOR: whether this Go is 1.MINOR or newer.
go_is_new_enough() {
    local minor
    minor=$("$1" version 2>/dev/null | sed -n 's/^go version go1\.\([0-9]*\).*/\1/p') || return 1
    [ "${minor:-0}" -ge "$2" ]
}

# Metrics sent to it: what it passes on is what was read, by construction and by cachestat.
check_otlp() {
    tests/otlp/run target/debug/cachetopd target/debug/cachestat target/otelcol/otelcol
}

# All of it in a directory of its own: the manual pages are such, and the commands run from there.
check_install() {
    local at=target/installed command
    rm -rf "$at"
    put_in_place target/debug "$at"
    for command in cachestat cachetop cachetopd cachedu; do
        "$at/bin/$command" --version
        grep -q "^.TH $command 1 " "$at/share/man/man1/$command.1"
    done
}

# All of it within $TEST_LIMIT seconds: whoever runs this may end it without a word, and nobody would know what hung. What
# it prints goes through a file: something that it leaves behind, with its output open, keeps nobody waiting.
test_within() {
    [ "$(id -u)" = 0 ] || die "the tests load BPF programs and mount file systems: run them as root"
    local status=0 log limit=${TEST_LIMIT:-5000} whole
    mkdir -p target
    : >target/steps
    : >target/whole.log
    timeout --kill-after=20 "$limit" ./setup.sh test-without-limit </dev/null >target/whole.log 2>&1 &
    whole=$!
    trap 'kill $whole; exit 130' INT TERM
    tail -n +1 -s 0.2 -f --pid=$whole target/whole.log
    wait $whole || status=$?
    if [ $status = 124 ] || [ $status = 137 ]; then
        printf '\n== not done within %s s; what was done by then:\n' "$limit"
        cat target/steps
        printf '\n== then this was running: %s\n' "$(cat target/running)"
        for log in target/step.out $(find target/vm-logs -name '*.log' -mmin -3 2>/dev/null); do
            printf '\n-- the end of %s\n' "$log"
            tail -n 12 "$log" | cut -c1-300
        done
    fi
    return $status
}

test_all() {
    # All of it is built once.
    export CARGO_INCREMENTAL=0
    step "packages" install_for_testing
    PATH="$HOME/.cargo/bin:$PATH"
    local clang truth load root du terminal stories kernels some name others= builds=()
    if cargo fmt --version >/dev/null 2>&1; then step "formatting (Rust)" cargo fmt --check; else
        skip "formatting (Rust)" "this toolchain has no rustfmt"; fi
    if command -v "$CLANG_FORMAT" >/dev/null; then step "formatting (BPF)" check_bpf_format; else
        skip "formatting (BPF)" "no $CLANG_FORMAT"; fi
    step "dependencies" tests/dependencies
    for clang in "${CLANGS[@]}"; do
        # The default one, with which all of the rest is built, and that of clippy.
        if [ "$(readlink -f "$(command -v "$clang")")" = "$(readlink -f "$(command -v clang)")" ]; then continue; fi
        if [ "$clang" = "${CLANGS[-1]}" ] && cargo clippy --version >/dev/null 2>&1; then continue; fi
        if command -v "$clang" >/dev/null; then step "build with $clang" build_with "$clang"; else
            skip "build with $clang" "apt has none"; fi
    done
    # Several directories are built into from here on, with the same C libraries and kernel programs in each.
    export PATH="/usr/lib/ccache:$PATH" CCACHE_DIR="$PWD/target/ccache"
    step "tests" env CARGO_PROFILE_DEV_OPT_LEVEL=0 cargo test --locked --no-fail-fast
    tests_as_root
    if grep -q static_programs <<<"${builds[*]}"; then step "static build" check_static; fi
    if [ -x target/static-root/cachetopd ] && (install buildah); then step "container" check_container; else
        skip "container" "no static build, or no buildah"; fi
    step "programs" programs
    step "installation" check_install
    if (install systemd); then step "unit" check_unit; else
        skip "unit" "no systemd-analyze"; fi
    if (install debian-archive-keyring mmdebstrap); then step "unit under systemd" check_service; else
        skip "unit under systemd" "no mmdebstrap"; fi
    step "kernel programs of two directories" check_equal
    if (fetch_prometheus); then step "Prometheus" check_prometheus; else
        skip "Prometheus" "its package cannot be had"; fi
    if (fetch_duckdb); then step "DuckDB" check_duckdb; else
        skip "DuckDB" "its package cannot be had"; fi
    if told fetch_collector >/dev/null; then step "OpenTelemetry collector" check_otlp; else
        skip "OpenTelemetry collector" "it cannot be built: Go 1.$MIN_GO or newer, and its modules, are needed"; fi
    rm -rf target/vm-results target/vm-logs
    mkdir -p target/vm-logs
    kernels=${VM_KERNELS:-$(tests/vm/vm list | awk '{ printf "%s%s", sep, $1; sep = "," }')}
    load=$(test_program load) || load=
    if [ -n "$load" ] && [ -n "$root" ]; then
        # Preemptible kernels skip events under such load, and say so (KNOWN_ISSUES.md): there, fewer of the tests.
        some=$(tr ',' '\n' <<<"$kernels" | grep -xE '5\.10|6\.12|7\.2' | paste -sd, || :)
        # While what is built beside goes on: it leaves a processor.
        [ -z "$some" ] || run_load "$load" "$root" "$some"
    fi
    wait "$others" || :
    for name in "${builds[@]}"; do step "${name//_/ }" told "$name"; done
    if grep -q clippy <<<"${builds[*]}"; then step "stack of the kernel programs" check_stack; fi
    if [ -n "$load" ] && [ -n "$root" ]; then
        step "load tests on this kernel, $(uname -r)" "$load"
    else
        step "load tests" false "(they do not build)"
    fi
    if du=$(test_program du) && [ -n "$du" ] && terminal=$(test_program terminal) && [ -n "$terminal" ]; then
        step "tests of cachedu on this kernel, $(uname -r)" "$du"
        step "cachetop in a terminal, on this kernel" "$terminal"
        # Without cachestat(2) and with it: what the others show is the same.
        some=$(tr ',' '\n' <<<"$kernels" | grep -xE '5\.10|7\.3' | paste -sd, || :)
        [ -z "$some" ] || run_views "$du" "$terminal" "$some"
    else
        step "tests of cachedu, and of cachetop in a terminal" false "(they do not build)"
    fi
    if command -v "$BROWSER" >/dev/null; then
        step "charts in a browser" cargo test --locked --test browser
    else
        skip "charts in a browser" "no $BROWSER"
    fi
    truth=$(test_program truth) || truth=
    if stories=$(test_program stories) && [ -n "$stories" ]; then
        # An old and a new one only: each takes minutes, because the disk is slow on purpose. Both at once: they mostly wait.
        some=$(tr ',' '\n' <<<"$kernels" | grep -xE '5\.10|7\.2' | paste -sd, || :)
        if [ -n "$some" ]; then beside run_stories "$stories" "$some"; else beside true; fi
    else
        step "stories" false "(they do not build)"
    fi
    if [ -n "$truth" ]; then
        step "truth tests on this kernel, $(uname -r)" "$truth"
        run_truth truth "$truth" "$kernels"
    else
        step "truth tests" false "(they do not build)"
    fi
    # What failed comes last, shortly: of a long output the end is what is kept and read.
    printf '\n%s\n' "$summary"
    [ -z "$details" ] || printf '== what failed\n%s\n' "$details"
    echo "$passed passed, $failed failed$([ $skipped = 0 ] || echo ", $skipped skipped")"
    [ $failed = 0 ]
}

case ${1-} in
run) run ;;
install) install_all ;;
static) build_static ;;
package) build_package ;;
test) test_within ;;
test-without-limit) test_all ;;
*)
    sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
