# Shared by ./fathom and ./test: install what is missing, configure, build. Sourced, with `root` and `program` set.
# Says one line a phase on stderr and nothing when there is nothing to do; the details go to build/*.log.

say() { printf '%s: %s\n' "$program" "$*" >&2; }

# The packages named in the given lists, without comments.
packages_in() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' -e 's/[[:space:]]//g' "$@"; }

# run_logged LOG COMMAND...: on failure, show the end of the log.
run_logged() {
  local log=$1 status=0
  shift
  "$@" >"$log" 2>&1 </dev/null || status=$?
  ((status == 0)) || show_failure "$log" "$status"
}

show_failure() {
  printf '\n' >&2
  tail -n 40 "$1" >&2
  say "failed; the whole log is $1"
  exit "$2"
}

# The folder of PyPI's package torch that FATHOM_TORCH_WHEEL names, now or when the preset was configured; none: Debian's libtorch.
torch_wheel() {
  echo "${FATHOM_TORCH_WHEEL:-$(sed -n 's/^FATHOM_TORCH_WHEEL:PATH=//p' "$root/build/$1/CMakeCache.txt" 2>/dev/null)}"
}

# install_missing CONFIGURED WHEEL LIST...: installs the Debian packages of the lists that are not there yet.
install_missing() {
  local configured=$1 wheel=$2 wanted missing
  shift 2
  mapfile -t wanted < <(packages_in "$@" | grep -vx "${wheel:+libtorch-dev}")
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    [[ -e $configured ]] && return  # somebody brought the libraries here another way
    say "this system has no apt-get; install the equivalents of these Debian packages, then run 'cmake --preset release':"
    printf '  %s\n' "${wanted[@]}" >&2
    exit 2
  fi

  # An unknown package is an error for dpkg-query, but its answer for the others is complete.
  mapfile -t missing < <(comm -23 <(printf '%s\n' "${wanted[@]}" | sort) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^installed //p' | sort))
  ((${#missing[@]})) || return 0

  local as_root=()
  if [[ $(id -u) != 0 ]]; then
    if ! command -v sudo >/dev/null; then
      say "missing packages, and neither root nor sudo to install them; ask for:"
      printf '  apt-get install --no-install-recommends %s\n' "${missing[*]}" >&2
      exit 2
    fi
    as_root=(sudo)
  fi
  say "installing ${#missing[@]} package(s) (${missing[*]})"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=300)
  # A package may start a service, which must not inherit the lock (fd 9).
  run_logged "$root/build/apt-update.log" "${apt[@]}" update 9>&-
  run_logged "$root/build/apt-install.log" "${apt[@]}" install --no-install-recommends "${missing[@]}" 9>&-
}

# A build folder is stale when the presets changed, when the tree was moved, when it was configured for another torch, or when it was
# configured without GoogleTest and that has come since.
must_configure() {
  local build=$1 stamp=$1/.configured
  [[ ! -e $build/build.ninja || ! -e $stamp || $root/CMakePresets.json -nt $stamp ]] && return 0
  [[ -z $2 ]] || grep -qxF "FATHOM_TORCH_WHEEL:PATH=$2" "$build/CMakeCache.txt" || return 0
  grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt" || return 0
  [[ $program == test ]] && grep -q '^GTest_DIR:PATH=.*NOTFOUND' "$build/CMakeCache.txt"
}

configure() {
  local preset=$1 wheel=$2 build=$root/build/$1 fresh=() settings=()
  must_configure "$build" "$wheel" || return 0
  [[ -z $wheel ]] || settings=(-D "FATHOM_TORCH_WHEEL:PATH=$wheel")
  say "configuring"
  if [[ -e $build/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
    fresh=(--fresh)
  fi
  (cd "$root" && run_logged "$root/build/configure-$preset.log" cmake --preset "$preset" "${fresh[@]}" "${settings[@]}")
  touch "$build/.configured"
}

# A file that includes torch takes about 1.5 GB to compile.
jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ { print int($2 / 1.5e6) }' /proc/meminfo)
  echo $((memory < 1 ? 1 : memory < cores ? memory : cores))
}

# compile PRESET TARGET HINT: silent when everything is up to date. The hint is for the first time.
compile() {
  local build=$root/build/$1 target=$2 hint=" ($3)" log=$root/build/build-$1.log status=0
  [[ ! -e $build/.ninja_log ]] || hint=
  local -x NINJA_STATUS='[%f/%t] '
  cmake --build "$build" --target "$target" -j "$(jobs)" 2>&1 </dev/null | tee "$log" | progress "$hint" || status=$?
  ((status == 0)) || show_failure "$log" "$status"
}

# Turns ninja's output into one line, kept up to date on a terminal.
progress() {
  local line said=
  while IFS= read -r line; do
    [[ $line == \[*/*\]\ * && $line != *\]\ Re-* ]] || continue  # "Re-checking globbed directories" builds nothing
    if [[ -t 2 ]]; then
      printf '\r\033[K%s: building%s %s' "$program" "$1" "${line%%]*}]" >&2
    elif [[ -z $said ]]; then
      say "building$1"
    fi
    said=yes
  done
  if [[ -t 2 && -n $said ]]; then printf '\n' >&2; fi
}

# prepare PRESET TARGET HINT LIST...: all of the above, one caller at a time.
prepare() {
  local preset=$1 target=$2 hint=$3 wheel
  shift 3
  mkdir -p "$root/build"
  exec 9>"$root/build/.lock"
  flock -n 9 || { say "waiting for another build to finish" && flock 9; }
  wheel=$(torch_wheel "$preset")
  install_missing "$root/build/$preset/build.ninja" "$wheel" "$@"
  configure "$preset" "$wheel"
  compile "$preset" "$target" "$hint"
  exec 9>&-
}
